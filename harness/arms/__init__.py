"""The scripts that arms of a comparison run inside the sandbox; each stands alone and knows nothing of the harness."""
