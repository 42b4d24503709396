"""Every verb that is asked to stop answers within a second: by SIGINT, SIGTERM, a timeout and a closed connection.  ctest: labels=nightly timeout=1800"""
from client import finish
from stops import LONG, test

test(LONG)
finish()
