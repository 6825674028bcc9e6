#include "plugins/elf_file.hpp"

#include <cstring>
#include <map>

#include "error.hpp"

namespace headroom {

namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "name this machine's ELF number here"
#endif

// Tables larger than this are damage.
constexpr uint64_t kLargestTable = 64u << 20;

// A damaged string table may lack its final NUL.
std::string name_at(const std::vector<char>& names, uint64_t offset) {
  if (offset >= names.size()) return {};
  return {names.data() + offset, strnlen(names.data() + offset, names.size() - offset)};
}

}  // namespace

ElfFile::ElfFile(const std::filesystem::path& path) : path_(path), stream_(path, std::ios::binary) {
  std::error_code problem;
  bytes_ = std::filesystem::file_size(path, problem);
  if (problem || !stream_) refuse(problem ? "cannot be read: " + problem.message() : "cannot be opened for reading");
  if (!read(0, sizeof header_, &header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) {
    refuse("is not a shared library: it does not begin with a whole ELF header");
  }
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_machine != kMachine) {
    refuse("is built for another kind of machine");
  }
  if (header_.e_type != ET_DYN) refuse("is an ELF file but not a shared library: link it with -shared");
  read_segments();
}

void ElfFile::refuse(const std::string& sentence) const {
  throw Error(Exit::plugin, "plugin", path_.string() + " " + sentence);
}

std::vector<char> ElfFile::content(const Elf64_Phdr& segment) {
  std::vector<char> data(segment.p_filesz);
  if (!read(segment.p_offset, data.size(), data.data())) refuse("cannot be read to its end");
  return data;
}

bool ElfFile::read(uint64_t offset, uint64_t bytes, void* to) {
  // Compared without adding: the sum of damaged numbers may overflow.
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  stream_.clear();  // a failed read leaves the stream unusable
  stream_.seekg(static_cast<std::streamoff>(offset));
  stream_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  return static_cast<bool>(stream_);
}

void ElfFile::read_segments() {
  if (header_.e_phnum == 0 || header_.e_phentsize != sizeof(Elf64_Phdr))
    refuse("is damaged: it has no program headers");
  segments_.resize(header_.e_phnum);
  if (!read(header_.e_phoff, segments_.size() * sizeof(Elf64_Phdr), segments_.data())) {
    refuse("is cut short: its program headers are missing; copy or build it again");
  }
  for (const Elf64_Phdr& segment : segments_) {
    // Loading a file whose segments end beyond it kills the process with SIGBUS.
    const bool inside = segment.p_offset <= bytes_ && segment.p_filesz <= bytes_ - segment.p_offset;
    if (segment.p_type == PT_LOAD && !inside) {
      refuse("is cut short: it has " + std::to_string(bytes_) +
             " bytes, its segments reach further; copy or build it again");
    }
  }
}

// Sections, not segments, carry the names. A stripped library keeps .dynsym and .dynamic, but may lose the section
// table.
ElfFacts ElfFacts::of(const std::filesystem::path& path) {
  ElfFile file(path);
  ElfFacts facts;
  if (file.header_.e_shnum == 0 || file.header_.e_shentsize != sizeof(Elf64_Shdr)) return facts;
  std::vector<Elf64_Shdr> sections(file.header_.e_shnum);
  if (!file.read(file.header_.e_shoff, sections.size() * sizeof(Elf64_Shdr), sections.data())) return facts;

  // The second argument only names the type of the entries.
  const auto content = [&]<class Entry>(const Elf64_Shdr& section, Entry) {
    std::vector<Entry> entries(section.sh_size <= kLargestTable ? section.sh_size / sizeof(Entry) : 0);
    if (!file.read(section.sh_offset, entries.size() * sizeof(Entry), entries.data())) entries.clear();
    return entries;
  };
  // sh_link is the section with the names: elf(5).
  const auto names_of = [&](const Elf64_Shdr& section) {
    return section.sh_link < sections.size() ? content(sections[section.sh_link], char{}) : std::vector<char>{};
  };

  for (const Elf64_Shdr& section : sections) {
    const std::vector<char> names =
        section.sh_type == SHT_DYNSYM || section.sh_type == SHT_DYNAMIC ? names_of(section) : std::vector<char>{};
    if (section.sh_type == SHT_DYNSYM) {
      facts.has_symbols = true;
      for (const Elf64_Sym& symbol : content(section, Elf64_Sym{})) {
        const std::string name = name_at(names, symbol.st_name);
        if (name.empty()) continue;
        (symbol.st_shndx == SHN_UNDEF ? facts.undefined : facts.exported).push_back(name);
      }
    } else if (section.sh_type == SHT_DYNAMIC) {
      for (const Elf64_Dyn& entry : content(section, Elf64_Dyn{})) {
        if (entry.d_tag == DT_NEEDED) facts.needed.push_back(name_at(names, entry.d_un.d_val));
        if (entry.d_tag == DT_FLAGS_1 && (entry.d_un.d_val & DF_1_NODELETE) != 0) facts.nodelete = true;
      }
    }
  }
  return facts;
}

}  // namespace headroom
