"""The workbench: a review worked on in a browser, on this machine only.

Every page reads and changes one review file, the one that the command line runs; every result is
a stage of that review. `app` answers requests that `safety` lets through, `pages` are what one
sees, `projects` is the review file with its history, and `jobs` are the computations under way.
"""
