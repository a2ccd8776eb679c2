# One image for worker, bulk worker, beat and Flower; docker-compose.yml says which process a container is.
FROM python:3.12-slim AS build
WORKDIR /src
RUN pip install --no-cache-dir uv==0.13.9
COPY requirements.lock ./
RUN uv venv /venv && uv pip sync --require-hashes --python /venv/bin/python requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY producer producer
COPY worker worker
COPY migrations migrations
RUN uv pip install --no-deps --python /venv/bin/python .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home mandua
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /var/empty
USER mandua
# SIGTERM drains: a worker starts nothing new and ends its running stages (stop_grace_period gives it the time).
STOPSIGNAL SIGTERM
ENTRYPOINT []
CMD ["mandua", "--help"]
