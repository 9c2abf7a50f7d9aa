# docker build -t ottla .
# docker run --rm -p 127.0.0.1:9092:9092 -p 127.0.0.1:8080:8080 -e OTTLA_NET_ADVERTISED=localhost:9092 -v ottla:/data ottla
#
# Inside the container it listens on all addresses, WITHOUT AUTHENTICATION: anyone who can reach the published ports can read
# and write everything. Publish them on 127.0.0.1, as above, or configure users and TLS first: docs/security.md.
#
# OTTLA_NET_ADVERTISED is where clients outside the container are told to connect to: the host, and the port on it.
# Every other setting is a variable too: `ottla config example` lists them, net.port is OTTLA_NET_PORT.

FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[security]"

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels "ottla[security]"
RUN useradd --system --uid 1000 ottla && mkdir /data && chown ottla /data
USER ottla
VOLUME /data
EXPOSE 9092 8080
ENV OTTLA_NET_HOST=0.0.0.0 OTTLA_BROKER_DATA_DIR=/data PYTHONUNBUFFERED=1
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ.get('OTTLA_HTTP_PORT', '8080')}/health\", timeout=2)"]
ENTRYPOINT ["ottla"]
CMD ["serve"]
