#include "plugins/note.hpp"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "config/digest.hpp"
#include "config/keys.hpp"
#include "error.hpp"
#include "plugins/elf_file.hpp"
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

// Far above any use: larger ones are not read.
constexpr uint64_t kLargestNoteSegment = 1u << 20;

std::string text(const char* from, std::size_t room) { return {from, strnlen(from, room)}; }

Note decode(const ElfFile& file, const std::filesystem::path& path, const char* descriptor, std::size_t bytes) {
  hr_note note{};
  // Copied, because the descriptor need not be aligned for an hr_note. What a short one lacks stays zero.
  std::memcpy(&note, descriptor, std::min(bytes, sizeof note));
  if (bytes < 16 || note.magic != HR_MAGIC)
    file.refuse("is damaged: its note does not begin with Headroom's magic number");
  // Only the first 16 bytes mean the same in every major version.
  if (note.abi_major != HR_ABI_MAJOR) return {note.abi_major, note.abi_minor, 0, note.flags, path.stem().string(), {}};
  if (bytes < sizeof note || note.struct_size < sizeof note) {
    file.refuse("is damaged: its note has " + std::to_string(std::min<std::size_t>(bytes, note.struct_size)) +
                " bytes instead of " + std::to_string(sizeof note));
  }
  return {note.abi_major,
          note.abi_minor,
          note.min_host_minor,
          note.flags,
          text(note.id, sizeof note.id),
          text(note.torch_tag, sizeof note.torch_tag)};
}

// The descriptor of a note among the notes of one segment; `name` with its final NUL. A malformed note ends the search:
// what follows has no known place.
std::optional<std::string_view> find_descriptor(std::string_view notes, uint64_t alignment, std::string_view name,
                                                uint32_t type) {
  const auto padded = [&](uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof head);
    // From the note's beginning: the header's 12 bytes are no multiple of 8.
    const uint64_t begin = padded(sizeof head + uint64_t{head.n_namesz}), end = begin + head.n_descsz;
    if (end > notes.size()) return std::nullopt;
    if (notes.substr(sizeof head, head.n_namesz) == name && head.n_type == type)
      return notes.substr(begin, head.n_descsz);
    notes.remove_prefix(std::min<uint64_t>(notes.size(), padded(end)));
  }
  return std::nullopt;
}

// The same among all notes of a file.
std::optional<std::string> find_note(ElfFile& file, std::string_view name, uint32_t type) {
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kLargestNoteSegment) continue;
    const std::vector<char> data = file.content(segment);
    // Notes are aligned to 4 bytes, but for .note.gnu.property and the like, to 8 in segments of their own.
    const auto found = find_descriptor({data.data(), data.size()}, segment.p_align == 8 ? 8 : 4, name, type);
    if (found) return std::string(*found);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Note> read_note(const std::filesystem::path& path) {
  ElfFile file(path);
  const auto descriptor = find_note(file, {HR_NOTE_NAME, sizeof HR_NOTE_NAME}, HR_NOTE_TYPE);
  if (!descriptor) return std::nullopt;
  return decode(file, path, descriptor->data(), descriptor->size());
}

std::string read_build(const std::filesystem::path& path) {
  ElfFile file(path);
  auto identity = find_note(file, {ELF_NOTE_GNU, sizeof ELF_NOTE_GNU}, NT_GNU_BUILD_ID);
  if (!identity) {
    std::ifstream stream(path, std::ios::binary);
    identity.emplace(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return Digest().add(*identity).hex();
}

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
  if (plugin->id == nullptr || !is_plugin_id(plugin->id)) {
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
