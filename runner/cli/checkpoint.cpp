#include <cstdio>
#include <memory>
#include <system_error>

#include "cli/commands.hpp"
#include "error.hpp"
#include "memory/readable.hpp"
#include "record/torch_state.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

struct ImportWords {
  std::string file, out, key;
};

void import(const ImportWords& words) {
  const fs::path from = words.file;
  const fs::path to = words.out.empty() ? fs::path(from).replace_extension(".safetensors") : fs::path(words.out);
  std::error_code error;
  if (fs::exists(to, error))
    throw Error(Exit::bad_input, "checkpoint", to.string() + " exists already; name another file with --out");
  const TorchStateFile state(from, words.key);
  int64_t bytes = 0;
  for (const TensorBytes& tensor : state.tensors()) bytes += static_cast<int64_t>(tensor.data.size());
  // Hugging Face's transformers refuses a safetensors file that does not name its format.
  write_whole_safetensors(to, state.tensors(), {{"format", "pt"}});
  std::printf("wrote %s: %zu tensors, %s\n", to.c_str(), state.tensors().size(), size_text(bytes).c_str());
}

}  // namespace

void add_checkpoint(CLI::App& app) {
  auto* checkpoint = app.add_subcommand("checkpoint", "Bring in weights of other programs")->require_subcommand(1);
  auto* command = checkpoint->add_subcommand(
      "import", "Rewrite a PyTorch state dictionary (torch.save) as safetensors, without running anything of it");
  command->footer(
      "Example: headroom checkpoint import policy_best.ckpt\n"
      "         then in an experiment: [init] from = \"policy_best.safetensors\", map = { \"model.\" = \"\" }");
  auto words = std::make_shared<ImportWords>();
  command->add_option("file", words->file, "File of torch.save: a dictionary of tensors")->required();
  command->add_option("--out", words->out, "File to write; default: beside it, with the ending .safetensors");
  command->add_option("--key", words->key, "Where the tensors are in a file that holds more, e.g. state_dict");
  command->callback([words] { import(*words); });
}

}  // namespace headroom
