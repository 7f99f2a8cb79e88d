"""Stands in for SGLang's compiled kernels, as far as a text model on a CPU needs them: one hash, in plain torch.

The hash is MurmurHash3 (32 bit, by Austin Appleby, in the public domain) of a seed, a position and a column; SGLang
draws its seeded samples from it.
"""

import torch

_LOW = 0xFFFFFFFF
_library = torch.library.Library("sgl_kernel", "DEF")
_library.define("murmur_hash32_cpu(Tensor seed, Tensor positions, Tensor col_indices) -> Tensor")


def _times(a, constant):
    """A product of 32 bits, in 64 without an overflow."""
    return ((a & 0xFFFF) * constant + ((((a >> 16) * constant) & 0xFFFF) << 16)) & _LOW


def _turned(a, bits):
    return ((a << bits) | (a >> (32 - bits))) & _LOW


def _mixed(state, block):
    state = state ^ _times(_turned(_times(block, 0xCC9E2D51), 15), 0x1B873593)
    return (_times(_turned(state, 13), 5) + 0xE6546B64) & _LOW


def _finished(state, length):
    state = state ^ length
    state = _times(state ^ (state >> 16), 0x85EBCA6B)
    state = _times(state ^ (state >> 13), 0xC2B2AE35)
    return state ^ (state >> 16)


def _murmur_hash32(seed, positions, columns):
    seed = seed.to(torch.int64)[:, None]
    positions = (positions.to(torch.int64) & _LOW)[:, None]
    columns = (columns.to(torch.int64) & _LOW)[None, :]
    state = torch.zeros_like(seed)
    for block in (seed & _LOW, (seed >> 32) & _LOW, positions):
        state = _mixed(state, block)
    state = _mixed(state.expand(-1, columns.shape[1]), columns)
    return _finished(state, 16).to(torch.uint32)


_library.impl("murmur_hash32_cpu", _murmur_hash32, "CPU")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is a GPU's")

    return missing


if not hasattr(torch._C, "_cuda_setDevice"):
    torch.cuda.set_device = lambda *args, **kwargs: None
