"""Releases: what runs and measurements of readiness came to, fixed for good, with all that bears it out.

projection.py makes the one dict from what is stored; faces.py and card.py render it; requirements.py says what is
missing; redaction.py makes the copies that are stored; store.py puts a release in place; check.py recomputes it.
"""
