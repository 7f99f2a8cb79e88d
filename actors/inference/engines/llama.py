"""llama.cpp's server in a process of its own. A script: it takes its settings on standard input, says where it
listens on standard output, and ends when its standard input closes.
"""

import json
import os
import sys


def main() -> int:
    settings = json.loads(sys.stdin.readline())
    out = os.dup(1)
    os.dup2(2, 1)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.model_alias = {settings["alias"]}
    params.n_ctx = settings["context"] * settings["slots"]
    params.n_parallel = settings["slots"]
    params.n_gpu_layers = settings["gpu_layers"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.ui = False
    params.endpoint_metrics = True
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        os.write(out, json.dumps({"error": str(error)}).encode() + b"\n")
        return 1
    os.write(out, json.dumps({"url": server.listening_address}).encode() + b"\n")
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)
