# Hapax as a container: one binary, one user without rights, no shell needed.
#
# Not run by the tests: where they run there is no container engine. It is kept simple for that reason.
#
#   docker build -t hapax .
#   docker run -p 127.0.0.1:8080:8080 -v hapax:/data hapax             # SQLite in the volume, no config: refuses every webhook
#   docker run -p 127.0.0.1:8080:8080 -v hapax:/data --stop-timeout 60 \
#     -v ./hapax.toml:/etc/hapax/hapax.toml:ro -e HAPAX_CONFIG=/etc/hapax/hapax.toml -e STRIPE_SECRET hapax
#
# Without HAPAX_ADMIN_TOKEN the admin's token is in the log of the first start: `docker logs`. HAPAX_LISTEN and HAPAX_STORE below
# beat `listen` and `store` of the config. Name secrets in the config as env:NAME and pass them with -e; a file:PATH has to be mounted
# beside the config and readable by user 10001. 127.0.0.1 in the URL of an effect is the container itself. The ports of [[guard]] listen on
# what the config says: write 0.0.0.0 there, and publish them, too.

FROM rust:1.95-slim-bookworm AS build
# For the C and assembly parts of aws-lc and SQLite.
RUN apt-get update && apt-get install -y --no-install-recommends build-essential cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package hapax && strip target/release/hapax

FROM debian:bookworm-slim
# For `sslmode=require` towards PostgreSQL, which is verified against these; other TLS roots are inside the binary.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
# /data is for the ledger: its owner is the user that writes there.
RUN useradd --system --uid 10001 --no-create-home hapax && mkdir /data /etc/hapax && chown hapax /data
COPY --from=build /src/target/release/hapax /usr/local/bin/hapax
USER 10001
WORKDIR /data
VOLUME /data
ENV HAPAX_LISTEN=0.0.0.0:8080 HAPAX_STORE=sqlite:/data/hapax.db
EXPOSE 8080
# `hapax health` asks /readyz of the server in this container: can it commit?
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["hapax", "health"]
# SIGTERM finishes what was taken: up to 25 s for requests, then up to 15 s for attempts. Docker's own patience is 10 s; give it a minute.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hapax"]
CMD ["serve"]
