"""The lane of the real agent programs: `make test-agents`. It proves the harness, never a model's skill."""
