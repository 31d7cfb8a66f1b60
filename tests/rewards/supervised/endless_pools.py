"""A module that makes a pool of itself whenever it is imported."""

from veriward.rewards.worker_pool import WorkerPool

WorkerPool("endless_pools:function").run([1])


def function(item):
    return item
