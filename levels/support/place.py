"""The device on which a thread puts its arrays: `PLACE` of notebook 01, which the higher levels use."""

import threading


class Place(threading.local):
    """`device` is the given one in each thread, until that thread sets another."""

    def __init__(self, device):
        self.device = device
