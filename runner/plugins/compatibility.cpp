#include "plugins/compatibility.hpp"

#include "error.hpp"
#include "plugins/host.hpp"

namespace headroom {

namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& sentence) {
  throw Error(Exit::plugin, "plugin", path.string() + ": " + sentence);
}

std::string version_text(unsigned major, unsigned minor) { return std::to_string(major) + "." + std::to_string(minor); }

const std::string kHostVersion = version_text(HR_ABI_MAJOR, HR_ABI_MINOR);

void require_torch(const Note& facts, const std::filesystem::path& path) {
  if (facts.torch_tag.empty())
    refuse(path, "plugin '" + facts.id + "' links LibTorch but does not say which: build it with headroom/model.hpp");
  const char* host_tag = native_host().torch_tag;
  if (host_tag == nullptr) {
    refuse(path, "plugin '" + facts.id +
                     "' needs LibTorch, which this program does not load: it opens in headroom-train only");
  }
  if (facts.torch_tag != host_tag) {
    refuse(path, "plugin '" + facts.id + "' was built with LibTorch " + facts.torch_tag +
                     "; this headroom runs LibTorch " + host_tag +
                     ": rebuild the plugin with the LibTorch and compiler of this headroom");
  }
}

bool is_id(const std::string& id) {
  if (id.empty() || id[0] < 'a' || id[0] > 'z') return false;
  return id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

}  // namespace

void require_compatible(const Note& facts, const std::filesystem::path& path) {
  if (facts.abi_major != HR_ABI_MAJOR) {
    refuse(path,
           "plugin '" + facts.id + "' was built for plugin ABI " + version_text(facts.abi_major, facts.abi_minor) +
               "; this headroom speaks ABI " + kHostVersion + ": " +
               (facts.abi_major > HR_ABI_MAJOR ? "update headroom, or rebuild the plugin with this headroom's header"
                                               : "rebuild the plugin with this headroom's header"));
  }
  if (facts.min_host_minor > HR_ABI_MINOR) {
    refuse(path, "plugin '" + facts.id + "' needs plugin ABI " + version_text(HR_ABI_MAJOR, facts.min_host_minor) +
                     " or newer; this headroom speaks ABI " + kHostVersion +
                     ": update headroom, or use an older version of the plugin");
  }
  if ((facts.flags & HR_PLUGIN_TORCH) != 0 || !facts.torch_tag.empty()) require_torch(facts, path);
}

void require_size(uint32_t struct_size, std::size_t smallest, const std::string& what, const std::string& component) {
  if (struct_size >= smallest && struct_size <= kLargestStruct) return;
  throw Error(Exit::plugin, component,
              what + " says it has " + std::to_string(struct_size) + " bytes; from " + std::to_string(smallest) +
                  " (ABI 1.0) to " + std::to_string(kLargestStruct) +
                  " are allowed: the plugin is damaged or fills struct_size wrongly");
}

Note read_header(const hr_plugin* plugin, const std::filesystem::path& path) {
  if (plugin->magic != HR_MAGIC)
    refuse(path, std::string(HR_PLUGIN_SYMBOL) + " does not begin with Headroom's magic number: it is something else");
  Note facts{plugin->abi_major, plugin->abi_minor, 0, plugin->flags, path.stem().string(), {}};
  // Only the first 16 bytes mean the same in every major version.
  if (facts.abi_major != HR_ABI_MAJOR) require_compatible(facts, path);
  require_size(plugin->struct_size, sizeof(hr_plugin), path.string() + ": its " + HR_PLUGIN_SYMBOL, "plugin");
  if (plugin->id == nullptr || !is_id(plugin->id)) {
    refuse(path, "its id " + (plugin->id == nullptr ? "is NULL" : "is '" + std::string(plugin->id) + "'") +
                     "; an id is a lower-case letter, then lower-case letters, digits or _");
  }
  if (plugin->version == nullptr || plugin->summary == nullptr)
    refuse(path, "its version or summary is NULL: both are required");
  if (plugin->get_interface == nullptr) refuse(path, "its get_interface is NULL: it offers nothing");
  facts.id = plugin->id;
  facts.min_host_minor = plugin->min_host_minor;
  if (plugin->torch_tag != nullptr) facts.torch_tag = plugin->torch_tag;
  return facts;
}

}  // namespace headroom
