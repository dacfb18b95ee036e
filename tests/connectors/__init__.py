"""Tests of connectors: real processes, killed and misbehaving; real servers on the other side.

installing.py   packages of connectors on the path, as pip would install them
nasty.py        connectors that do everything wrong
supervised.py   a connector under a supervisor, over a log of the test
"""
