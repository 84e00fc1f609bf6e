# An image with the `windlass` program: docker build -t windlass .
# Both stages are of one Debian release, so that the program finds the C library it was built with.
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --release --package windlass-cli

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/windlass /windlass
ENTRYPOINT ["/windlass"]
