// Reads the plugin's note out of the file.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "plugins/elf_file.hpp"
#include "plugins/library.hpp"

namespace headroom {

namespace {

constexpr uint64_t kLargestNoteSegment = 1u << 20;

std::string text(const char* from, std::size_t room) { return {from, strnlen(from, room)}; }

Note decode(const ElfFile& file, const std::filesystem::path& path, const char* descriptor, std::size_t bytes) {
  hr_note note{};
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

// The descriptor of Headroom's note among the notes of one segment. A malformed note ends the search: what follows has
// no known place.
std::optional<std::string_view> find_descriptor(std::string_view notes, uint64_t alignment) {
  const auto padded = [&](uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
  constexpr std::string_view name(HR_NOTE_NAME, sizeof HR_NOTE_NAME);
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof head);
    notes.remove_prefix(sizeof head);
    const uint64_t name_room = padded(head.n_namesz);
    if (name_room > notes.size() || head.n_descsz > notes.size() - name_room) return std::nullopt;
    if (notes.substr(0, head.n_namesz) == name && head.n_type == HR_NOTE_TYPE)
      return notes.substr(name_room, head.n_descsz);
    notes.remove_prefix(std::min<uint64_t>(notes.size(), name_room + padded(head.n_descsz)));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Note> read_note(const std::filesystem::path& path) {
  ElfFile file(path);
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kLargestNoteSegment) continue;
    const std::vector<char> data = file.content(segment);
    if (const auto descriptor = find_descriptor({data.data(), data.size()}, segment.p_align == 8 ? 8 : 4)) {
      return decode(file, path, descriptor->data(), descriptor->size());
    }
  }
  return std::nullopt;
}

}  // namespace headroom
