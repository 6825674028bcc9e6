"""Two network namespaces of this machine, joined by a link of a given rate: two machines, as far as TCP sees."""
import os
import shutil
import subprocess

ADDRESSES = ("10.213.77.1", "10.213.77.2")


class NotPermitted(Exception):
    """With the reason."""


class Link:
    """`rate` as tc has it, "1gbit". NotPermitted where this user, or this container, may not make one."""

    def __init__(self, rate):
        self.names = tuple(f"headroom-{os.getpid()}-{rank}" for rank in range(2))
        self.rate, self.port = rate, 29600

    def __enter__(self):
        for tool in ("ip", "tc"):
            if shutil.which(tool) is None:
                raise NotPermitted(f"there is no {tool} here: install iproute2")
        try:
            for name in self.names:
                self.call("ip", "netns", "add", name)
            ends = ("hr0", "hr1")
            self.call("ip", "-n", self.names[0], "link", "add", ends[0], "type", "veth", "peer", "name", ends[1], "netns", self.names[1])
            for name, end, address in zip(self.names, ends, ADDRESSES):
                self.call("ip", "-n", name, "address", "add", address + "/24", "dev", end)
                self.call("tc", "-n", name, "qdisc", "add", "dev", end, "root", "tbf", "rate", self.rate, "burst", "256kb",
                          "latency", "50ms")
                for device in ("lo", end):
                    self.call("ip", "-n", name, "link", "set", device, "up")
        except NotPermitted:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)

    @staticmethod
    def call(*words):
        done = subprocess.run(words, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise NotPermitted(f"{' '.join(words)}: {done.stderr.strip()}")

    def next_port(self):
        """For both ranks of a run: that of the last may still be in use."""
        self.port += 1

    def at(self, rank, words):
        """The command as rank 0 or 1 of two, in its namespace; as torchrun starts it."""
        variables = {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": ADDRESSES[0],
                     "MASTER_PORT": self.port, "GLOO_SOCKET_IFNAME": f"hr{rank}"}
        return ["ip", "netns", "exec", self.names[rank], "env", *(f"{name}={value}" for name, value in variables.items()), *words]
