"""Lessons: build the Transformer part by part; a check names each mistake.

``lessons/`` has a folder for each lesson and exercise: the learner's file, texts, probes.
``lesson`` reads its record, ``edits`` applies its mistakes, ``check`` runs its probes on known
``inputs``. ``worker`` runs the learner's file in a process of its own, ``judge`` names the mistake.
``examine`` leads from a file to a verdict. ``folder`` and ``watch`` have the learner's files and
the loop around them. ``parts`` builds a translator of a learner's parts, or of mistakes.
"""
