// Files that are not whole shared libraries: refused by reading, before the dynamic linker sees them.
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "error.hpp"
#include "plugins/elf_file.hpp"
#include "plugins/library.hpp"

namespace headroom {
namespace {

const std::string kPlugin = HEADROOM_TEST_PLUGIN_DIR "/c_source_1_0.so";

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class HostileElf : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("headroom_elf_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) {
    const std::string path = (folder_ / "file.so").string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path;
  }

  std::string refusal(const std::string& bytes) {
    const std::string path = write(bytes);
    try {
      Library::load(path);
    } catch (const Error& problem) {
      EXPECT_EQ(problem.exit_code(), Exit::plugin);
      const std::string start = "[plugin] " + std::filesystem::canonical(path).string() + " ",
                        sentence = problem.what();
      return sentence.substr(0, start.size()) == start ? sentence.substr(start.size()) : sentence;
    }
    return "loaded";
  }

  std::filesystem::path folder_;
};

TEST_F(HostileElf, NotElf) {
  const std::string sentence = "is not a shared library: it does not begin with a whole ELF header";
  EXPECT_EQ(refusal("this is a text file\n"), sentence);
  EXPECT_EQ(refusal(std::string(1000, 'x')), sentence);
  EXPECT_EQ(refusal(""), sentence);
}

TEST_F(HostileElf, AnotherMachine) {
  std::string bytes = content_of(kPlugin);
  bytes[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(refusal(bytes), "is built for another kind of machine");
}

TEST_F(HostileElf, AnObjectFile) {
  std::string bytes = content_of(kPlugin);
  bytes[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
  EXPECT_EQ(refusal(bytes), "is an ELF file but not a shared library: link it with -shared");
}

TEST_F(HostileElf, CutShort) {
  const std::string bytes = content_of(kPlugin);
  EXPECT_EQ(refusal(bytes.substr(0, 80)), "is cut short: its program headers are missing; copy or build it again");
  EXPECT_EQ(refusal(bytes.substr(0, 4096)),
            "is cut short: it has 4096 bytes, its segments reach further; copy or build it again");
  // Cut anywhere: a sentence, never a crash. Beyond the last segment lies nothing the dynamic linker needs.
  for (std::size_t size = 0; size < bytes.size(); size += 211) {
    try {
      read_note(write(bytes.substr(0, size)));
      ElfFacts::of(folder_ / "file.so");
    } catch (const Error& problem) {
      EXPECT_EQ(problem.exit_code(), Exit::plugin);
    }
  }
}

// Headers whose offsets and sizes point anywhere: reading them ends in a note, no note or a sentence.
TEST_F(HostileElf, DamagedHeaders) {
  const std::string bytes = content_of(kPlugin);
  Elf64_Ehdr header;
  memcpy(&header, bytes.data(), sizeof header);
  const std::string path = write(bytes);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, char value) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(value).flush();
  };
  int refused = 0, read = 0;
  const auto damage = [&](std::size_t at, char value) {
    put(at, value);
    try {
      read_note(path);
      ElfFacts::of(path);
      ++read;
    } catch (const Error&) {
      ++refused;
    }
    put(at, bytes[at]);
  };
  const std::size_t programs_end = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  for (std::size_t at = 0; at < programs_end; ++at) damage(at, '\xff');
  for (std::size_t at = 0; at < programs_end; at += 3) damage(at, '\x7f');
  for (std::size_t at = header.e_shoff; at < bytes.size(); at += 7) damage(at, '\xff');
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 100);
}

TEST_F(HostileElf, ReadsWhatTheNoteSays) {
  const auto note = read_note(kPlugin);
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->id, "c_source");
  EXPECT_EQ(note->abi_major, 1);
  EXPECT_EQ(note->abi_minor, 0);
  EXPECT_EQ(note->flags, 0u);
  EXPECT_EQ(note->torch_tag, "");
}

TEST_F(HostileElf, EachBuildOfALibraryHasANameOfItsOwn) {
  const std::string build = read_build(kPlugin);
  EXPECT_EQ(read_build(write(content_of(kPlugin))), build) << "wherever the file lies";
  EXPECT_NE(read_build(HEADROOM_TEST_PLUGIN_DIR "/c_source_1_1.so"), build) << "the same source with another header";
}

// As .note.gnu.property is: descriptor and next note begin at multiples of 8 from the note's own beginning.
TEST_F(HostileElf, ReadsNotesThatAreAlignedToEight) {
  Elf64_Ehdr header;
  memcpy(&header, content_of(kPlugin).data(), sizeof header);
  header.e_phoff = sizeof header, header.e_phnum = 1;
  std::string notes;
  const auto add = [&](const std::string& name, uint32_t type, const std::string& descriptor) {
    const auto pad = [&] { notes.resize((notes.size() + 7) / 8 * 8); };
    const Elf64_Nhdr head{static_cast<Elf64_Word>(name.size()), static_cast<Elf64_Word>(descriptor.size()), type};
    notes.append(reinterpret_cast<const char*>(&head), sizeof head) += name;
    pad();
    notes += descriptor;
    pad();
  };
  hr_note said{};
  said.magic = HR_MAGIC, said.abi_major = HR_ABI_MAJOR, said.struct_size = sizeof said;
  strcpy(said.id, "aligned");
  add({"GNU", 4}, NT_GNU_PROPERTY_TYPE_0, std::string(12, '\1'));
  add({HR_NOTE_NAME, sizeof HR_NOTE_NAME}, HR_NOTE_TYPE, {reinterpret_cast<const char*>(&said), sizeof said});
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE, segment.p_align = 8;
  segment.p_offset = sizeof header + sizeof segment, segment.p_filesz = notes.size();
  const auto note = read_note(write(std::string(reinterpret_cast<const char*>(&header), sizeof header) +
                                    std::string(reinterpret_cast<const char*>(&segment), sizeof segment) + notes));
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->id, "aligned");
}

}  // namespace
}  // namespace headroom
