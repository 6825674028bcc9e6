"""The TDS-LSTM of bench/peers, of the sizes of the reference's small golden files.

As a script: tds_golden.py GOLDEN RUN exits with 1 where a step of SGD with a rate of 1 has not left the golden gradients."""
import sys

import golden_run

import tds_lstm
import tds_lstm_module

SMALL = {"convolutions": [(32, 11, 5), (32, 5, 2)],
         "stages": [{"kernel_in": 17, "stride": 4, "channels": 4, "width": 8, "kernel": 9},
                    {"kernel_in": 9, "stride": 2, "channels": 4, "width": 8, "kernel": 5, "out": 16}],
         "hidden": 64, "layers": 2, "scale": 0.01, "loss": (0.0, 1.0)}


def weights_of(golden):
    return {name[2:]: values for name, values in golden.items() if name.startswith("w/")}


def net(golden, velocity):
    module = tds_lstm.TdsLstm({**SMALL, "velocity": velocity})
    module.load_state_dict(weights_of(golden_run.load(golden)))
    return module


forward, loss = tds_lstm_module.forward, tds_lstm_module.mae


def rows(golden):
    batch = golden_run.load(golden)
    return golden_run.Rows({"emg": batch["in/emg"].transpose(1, 2).contiguous(), "valid": batch["in/no_ik_failure"],
                            "joint_angles": batch["in/joint_angles"].transpose(1, 2).contiguous()})


def main():
    golden, (weights, mean_loss) = golden_run.load(sys.argv[1]), golden_run.result_of(sys.argv[2])
    found = {name: before.double() - weights[name] for name, before in weights_of(golden).items()}
    expected = {name[len("grad/"):]: values for name, values in golden.items() if name.startswith("grad/")}
    found["the loss"], expected["the loss"] = golden["loss/mae_f64"].new_tensor([mean_loss]), golden["loss/mae_f64"]
    golden_run.hold(found, expected, lambda name: 1e-7 if name == "the loss" else 1e-4)


if __name__ == "__main__":
    main()
