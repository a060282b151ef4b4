"""Lessons: build the Transformer part by part; a check names each mistake.

In this order: ``lesson`` (the records), ``lessons/`` (the learner's files and their texts),
``check`` and ``checks/`` (probes, and a reference that can make every known mistake), ``worker``
(runs the learner's file in a process of its own), ``judge`` (names the mistake), ``examine`` (from
a file to a verdict), ``folder`` and ``watch`` (the learner's files, and the loop around them).
"""
