"""What differs from one kind of subject to another, a module each: `KIND` in it is a class (harness/subjects/_kind.py).

A subject names its kind in its subject.toml. What is only data stands there; what has to be done, here. Adding a
subject of a kind that is there is adding a folder under scenarios/; adding a kind is adding a module.
"""
