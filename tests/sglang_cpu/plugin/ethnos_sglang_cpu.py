"""Lets SGLang run deterministically on a CPU, in tests: attention in plain torch is deterministic there as it is."""


def register():
    from sglang.srt.arg_groups import choices
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    deterministic = choices.DETERMINISTIC_ATTENTION_BACKEND_CHOICES
    with_cache = choices.RADIX_SUPPORTED_DETERMINISTIC_ATTENTION_BACKEND
    if "torch_native" not in deterministic:
        choices.add_deterministic_attention_backend_choices(["torch_native"])
    if "torch_native" not in with_cache:
        choices.add_radix_supported_deterministic_attention_backend_choices(["torch_native"])
    HookRegistry.register(
        "sglang.srt.batch_invariant_ops.enable_batch_invariant_mode", lambda *args, **kwargs: None, HookType.REPLACE
    )
