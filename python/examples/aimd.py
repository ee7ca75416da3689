"""AIMD in 30 lines: one packet more per round trip, half the window after a loss. Runs beside CUBIC and PBE-CC."""

import airpace


class Aimd(airpace.Controller):
    """Additive increase, multiplicative decrease (Chiu and Jain 1989)."""

    def __init__(self, setup: airpace.Setup) -> None:
        super().__init__(setup)
        self.cwnd = 10.0 * setup.mss_bytes
        self.recovered = 0

    def on_ack(self, ack: airpace.Ack) -> None:
        if ack.cwnd_limited and ack.largest >= self.recovered:
            self.cwnd += self.setup.mss_bytes * ack.acked_bytes / self.cwnd

    def on_loss(self, loss: airpace.Loss) -> None:
        if loss.largest >= self.recovered:  # losses of one window count once
            self.recovered = loss.next_number
            self.cwnd = max(self.cwnd / 2, self.setup.mss_bytes)

    def control(self) -> airpace.Control:
        return airpace.Control(self.cwnd)


if __name__ == "__main__":
    run = airpace.simulate("stationary-idle", schemes=[Aimd, "cubic", "pbe"], set={"duration_s": 10})
    summary = run.summary
    for scheme, mbps in zip(summary["scheme"], summary["throughput_mbps"], strict=True):
        print(f"{scheme:6} {mbps:5.1f} Mbit/s")
