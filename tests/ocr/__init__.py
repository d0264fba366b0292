"""Before numpy is loaded: one thread, as in the capture process. More would fight with the other tests'."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
