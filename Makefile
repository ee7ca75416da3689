# The tasks of a maintainer. Each calls what ./test or cargo has for it; ./test runs all checks.

CARGO ?= cargo
LIBRARIES = --package airpace-core --package airpace-radio --package airpace-event --package airpace-cc \
	--package airpace-phy --package airpace-diag

.PHONY: help lint test docs bench package crates
.DEFAULT_GOAL := help

help: ## list the tasks
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

lint: ## format, clippy, licences
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- --deny warnings
	./.ci/deny licenses bans sources

test: ## all checks, as in continuous integration
	./test

docs: ## documentation of all crates, private items included
	$(CARGO) doc --locked --workspace --no-deps --document-private-items

bench: ## benches of the libraries; figures in target/criterion
	$(CARGO) bench --locked $(LIBRARIES) --benches

package: ## Debian package, tarball and image in target/package
	./package all

crates: ## pack the libraries and build what was packed
	$(CARGO) package --quiet --locked $(LIBRARIES)
