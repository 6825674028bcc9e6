#include "plugins/model_files.hpp"

#include <fstream>
#include <utility>
#include <vector>

#include "config/digest.hpp"
#include "error.hpp"
#include "plugins/call.hpp"

namespace headroom {

namespace {

struct ListedFiles {
  std::vector<std::pair<std::string, std::string>> files;  // name, path
  std::string problem;

  // Nothing may be thrown through the plugin.
  static int32_t visit(void* context, const char* name, const char* path) noexcept {
    auto& self = *static_cast<ListedFiles*>(context);
    try {
      if (name == nullptr || path == nullptr) {
        self.problem = "a file has no name or no path";
        return 1;
      }
      self.files.emplace_back(name, path);
      return 0;
    } catch (...) {
      self.problem = "there is no memory for their list";
      return 1;
    }
  }
};

// In pieces: a file of weights may be larger than the memory there is.
std::string digest_of_file(const std::string& path, const std::string& id) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(1 << 20);
  Digest digest;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    digest.add({piece.data(), static_cast<size_t>(file.gcount())});
  }
  if (!file.eof()) throw Error(Exit::bad_input, id, "the model's file " + path + " cannot be read");
  return digest.hex();
}

}  // namespace

std::map<std::string, std::string> model_file_digests(const Library& library, const OptionValues& options,
                                                      Session& session) {
  const hr_model_files* table = library.model_files();
  if (table == nullptr) return {};
  const std::string id = library.id();
  const NativeOptions native(to_option_table(library.model_torch()->options, id), options);
  ListedFiles listed;
  hr_error error = no_error();
  check(call(id, "list", table->list, session.host_for(id), native.values(), &ListedFiles::visit, &listed, &error),
        error, id, "listing the model's files");
  if (!listed.problem.empty()) throw Error(Exit::plugin, id, "listing the model's files: " + listed.problem);
  std::map<std::string, std::string> digests;
  for (const auto& [name, path] : listed.files) {
    if (!digests.emplace(name, digest_of_file(path, id)).second)
      throw Error(Exit::plugin, id, "it lists the model's file '" + name + "' twice");
  }
  return digests;
}

}  // namespace headroom
