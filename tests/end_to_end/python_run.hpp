// Runs of the modules of python_models/net.py.
#pragma once

#include "python_trial.hpp"

namespace headroom {

class PythonRun : public PythonTrial {
 protected:
  void SetUp() override {
    PythonTrial::SetUp();
    if (IsSkipped()) return;
    write_text(folder_ / "model.py", model_file());
    write_text(folder_ / "layers.py", "from torch import nn\n\n\nclass Last(nn.Linear):\n    pass\n");
    write_trial("model.py", "class = \"Net\"\nloss = \"mse\"\n");
  }
  double loss(const std::string& out) const {
    return read_json(run_folder(out) / "summary.json").at("metrics").at("val/loss").get<double>();
  }
  static std::string model_file() { return read_text(HEADROOM_SOURCE_DIR "/tests/end_to_end/python_models/net.py"); }
  // The file with more behind it.
  void add_to_file(const std::string& text) const { write_text(folder_ / "model.py", model_file() + text); }
};

}  // namespace headroom
