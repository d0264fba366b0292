"""The exam: it puts an agent before a bench, keeps everything that happened in a bundle, and lets graders judge it.

Running and grading are separate: `harness.run` leaves bundles, `graders` read them. Only `harness.execute` and
`harness.recorder` start processes.
"""
