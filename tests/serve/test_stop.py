"""A verb that is asked to stop answers within a second: some verbs, and that the table of stops.py has all.  ctest: timeout=200"""
from client import finish
from stops import QUICK, test, test_table

test_table()
test(QUICK, quick=True)
finish()
