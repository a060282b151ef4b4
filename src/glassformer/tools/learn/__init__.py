"""Lessons build the Transformer part by part; a check names each mistake.

``lessons/`` has a folder for each lesson and exercise, with the learner's file, texts and probes.
``lesson`` reads a lesson's record, ``edits`` applies mistakes, ``check`` runs probes on known
``inputs``, and ``situations`` makes most probes, from the axes of a hole's signature. ``worker``
runs the learner's file in a separate process, ``judge`` names the mistake, or says the facts that
``observed`` finds. ``examine`` leads from a file to a verdict. ``folder`` holds the learner's
files, ``watch`` checks them at each save. ``parts`` builds a translator from a learner's parts, or
from mistakes.
"""
