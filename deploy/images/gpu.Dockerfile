# Ethnos for nodes with GPUs: the CPU image's environment beside SGLang's own. Build the CPU image first, then
#   docker build -f deploy/images/gpu.Dockerfile --build-arg CPU_IMAGE=ethnos:0.1.0-cpu -t ethnos:0.1.0-gpu .
# SGLang pins torch and much else exactly, so it keeps an environment of its own; a society file names its Python:
#   managed: {python: /usr/bin/python3, model_path: ...}
ARG CPU_IMAGE=ethnos:0.1.0-cpu
FROM ${CPU_IMAGE} AS ethnos

FROM python:3.11.14-slim-bookworm AS python

FROM lmsysorg/sglang:v0.5.23-cu129
# The interpreter that the environment was made with, where it expects it.
COPY --from=python /usr/local/bin/python3.11 /usr/local/bin/python3.11
COPY --from=python /usr/local/lib/python3.11 /usr/local/lib/python3.11
COPY --from=python /usr/local/lib/libpython3.11.so.1.0 /usr/local/lib/libpython3.11.so.1.0
COPY --from=ethnos /opt/ethnos /opt/ethnos
RUN ln -sf python3.11 /usr/local/bin/python && ldconfig \
    && (getent group 1000 || groupadd --gid 1000 ethnos) \
    && (getent passwd 1000 || useradd --uid 1000 --gid 1000 --create-home ethnos) \
    && install -d -o 1000 -g 1000 /runs /home/ethnos
ENV PATH=/opt/ethnos/bin:$PATH HOME=/home/ethnos ETHNOS_RUNS_DIR=/runs ETHNOS_LOG=json \
    RAY_USAGE_STATS_ENABLED=0 PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /home/ethnos
ENTRYPOINT ["ethnos"]
CMD ["doctor"]
