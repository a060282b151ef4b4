"""Lessons: build the Transformer part by part; a check names each mistake.

``lessons/`` has the learner's files and their texts, ``lesson`` their records. ``check`` and
``checks/`` have the probes, and a reference that can make every known mistake. ``worker`` runs the
learner's file in a process of its own, ``judge`` names the mistake. ``examine`` leads from a file
to a verdict. ``folder`` and ``watch`` have the learner's files and the loop around them.
"""
