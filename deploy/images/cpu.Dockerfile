# Ethnos for nodes without GPUs: head, agents, laptop. From the root of the repository:
#   docker build -f deploy/images/cpu.Dockerfile -t ethnos:0.1.0-cpu .
FROM python:3.11.14-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/ethnos
ENV PATH=/opt/ethnos/bin:$PATH PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# What others made comes first: this layer changes when constraints.txt does.
COPY constraints.txt pyproject.toml ./
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
print('\n'.join([*p['dependencies'], *p['optional-dependencies']['openai'], *p['optional-dependencies']['sglang'], \
*p['optional-dependencies']['tls'], *p['optional-dependencies']['traces']]))" > wanted.txt \
    && pip install -c constraints.txt -r wanted.txt 'ray[default]'
COPY README.md LICENSE ./
COPY actors actors
COPY analytics analytics
COPY dashboard dashboard
COPY societies societies
COPY src src
COPY world world
RUN pip install --no-deps .

FROM python:3.11.14-slim-bookworm
# Ray's autoscaler and probes call these.
RUN apt-get update && apt-get install -y --no-install-recommends procps wget && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 1000 ethnos && useradd --uid 1000 --gid 1000 --create-home ethnos && install -d -o ethnos /runs
COPY --from=build /opt/ethnos /opt/ethnos
ENV PATH=/opt/ethnos/bin:$PATH ETHNOS_RUNS_DIR=/runs ETHNOS_LOG=json RAY_USAGE_STATS_ENABLED=0 PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /home/ethnos
VOLUME /runs
ENTRYPOINT ["ethnos"]
CMD ["doctor"]
