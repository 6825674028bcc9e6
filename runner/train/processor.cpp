#include "train/processor.hpp"

#include <ATen/Version.h>
#include <cstdlib>
#include <fstream>
#include <sys/utsname.h>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

// Where the kernel gives no name, as on Arm, the architecture.
std::string model_name(const std::string& root) {
  std::ifstream file(root + "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname name{};
  return uname(&name) == 0 ? name.machine : "unknown processor";
}

}  // namespace

std::string processor_text(const std::string& root) {
  std::string text = model_name(root) + ", " + at::get_cpu_capability();
  for (const auto& [name, isa] : sdk::cpu_isa_names)
    if (isa == sdk::cpu_isa() && isa < sdk::best_cpu_isa()) text += ", kernels " + std::string(name);
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') text += std::string(", ") + variable + "=" + value;
  }
  return text;
}

}  // namespace headroom
