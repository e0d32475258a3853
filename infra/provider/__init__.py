"""Pulumi provider `pd`: the resources of this repository that no published provider has.

A plugin of its own instead of dynamic resources, because a dynamic resource stores its pickled code in the state (so
that editing the code changes every resource), shows a traceback for each error and never hears of a Ctrl-C.
"""
