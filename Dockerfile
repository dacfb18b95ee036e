# An image of a node: Python, Java for the Iceberg tables, the web page. No Node.js: the page is in src/.
#   docker build -t frazil .

FROM python:3.12-slim-bookworm AS build
WORKDIR /source
RUN python -m venv /opt/frazil
COPY requirements/run.lock requirements/
RUN /opt/frazil/bin/pip install --no-cache-dir --require-hashes -r requirements/run.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src src
RUN /opt/frazil/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim-bookworm
# tini forwards SIGTERM to the node, and reaps what its processes leave behind.
# Versions are those of the Debian release that the base image names.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home frazil \
    && install --directory --owner=frazil --group=frazil /data
COPY --from=build /opt/frazil /opt/frazil
ENV PATH=/opt/frazil/bin:$PATH
USER 10001:10001
WORKDIR /home/frazil
# Compiles for the kind of processor that builds the image; on another kind, each start compiles again.
RUN frazil warm
VOLUME /data
EXPOSE 4317 4318 4320 8815 9092
# Without TLS; a node with a certificate needs a check of its own.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m --start-interval=2s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:4320/livez', timeout=4)"]
# Stops within 10 s of SIGTERM: give it more than that.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "frazil", "up", "--data", "/data"]
