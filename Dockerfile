# Hapax as a container: one binary, one user without rights, no shell needed.
#
# Not run by the tests: where they run there is no container engine. It is kept simple for that reason.
#
#   docker build -t hapax .
#   docker run -p 8080:8080 -v hapax:/data hapax                       # SQLite in the volume, no config: refuses every webhook
#   docker run -p 8080:8080 -v hapax:/data -v ./hapax.toml:/etc/hapax/hapax.toml:ro hapax

FROM rust:1.95-slim-bookworm AS build
# For the C and assembly parts of aws-lc and SQLite.
RUN apt-get update && apt-get install -y --no-install-recommends build-essential cmake && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked --package hapax && strip target/release/hapax

FROM debian:bookworm-slim
# TLS roots are inside the binary. /data is for the ledger: its owner is the user that writes there.
RUN useradd --system --uid 10001 --no-create-home hapax && mkdir /data /etc/hapax && chown hapax /data
COPY --from=build /src/target/release/hapax /usr/local/bin/hapax
USER 10001
WORKDIR /data
VOLUME /data
ENV HAPAX_LISTEN=0.0.0.0:8080 HAPAX_STORE=sqlite:/data/hapax.db
EXPOSE 8080
# `hapax health` asks /readyz of the server in this container: can it commit?
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["hapax", "health"]
# SIGTERM finishes what was taken; give it the half minute that it may need.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hapax"]
CMD ["serve"]
