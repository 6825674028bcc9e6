// PyTorch's files: one that torch.save wrote, archives made here with any pickle in them, and thousands of mutations.
#include "record/torch_state.hpp"

#include <cstring>
#include <gmock/gmock.h>
#include <random>
#include <zlib.h>

#include "error.hpp"
#include "record/torch_pickle.hpp"
#include "temporary_folder.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;

std::filesystem::path golden() {
  return std::filesystem::path(HEADROOM_SOURCE_DIR) / "tests/golden/checkpoint/state.ckpt";
}

template <class T>
std::vector<T> values(const TorchStateFile& state, const std::string& name) {
  for (const TensorBytes& tensor : state.tensors()) {
    if (tensor.name != name) continue;
    std::vector<T> result(tensor.data.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), tensor.data.data(), tensor.data.size());
    return result;
  }
  throw std::runtime_error("no tensor " + name);
}

template <class T>
void append(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A zip archive as torch.save lays it out, entries stored as they are.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string file, directory;
  for (const auto& [name, data] : entries) {
    const auto crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size())));
    const auto size = static_cast<uint32_t>(data.size()), offset = static_cast<uint32_t>(file.size());
    std::string facts(8, '\0');  // flags, method, time and date
    append(facts, crc);
    append(facts, size);
    append(facts, size);
    append(facts, static_cast<uint16_t>(name.size()));
    append(facts, uint16_t{0});
    file += std::string("PK\3\4\0\0", 6) + facts + name + data;
    directory += std::string("PK\1\2\0\0\0\0", 8) + facts + std::string(10, '\0');
    append(directory, offset);
    directory += name;
  }
  std::string end("PK\5\6\0\0\0\0", 8);
  append(end, static_cast<uint16_t>(entries.size()));
  append(end, static_cast<uint16_t>(entries.size()));
  append(end, static_cast<uint32_t>(directory.size()));
  append(end, static_cast<uint32_t>(file.size()));
  append(end, uint16_t{0});
  return file + directory + end;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Pickle of {"x": tensor}: `tensor` stands for the operations that leave it on the stack.
std::string pickle_of(const std::string& tensor) { return std::string("\x80\x02}X\1\0\0\0x", 9) + tensor + "s."; }

// float32 of 4 elements in storage "0", as shape and stride say.
std::string tensor_of(const std::string& shape, const std::string& stride, const std::string& offset = "K\1") {
  return "ctorch._utils\n_rebuild_tensor_v2\n((X" + std::string("\7\0\0\0", 4) + "storagectorch\nFloatStorage\nX" +
         std::string("\1\0\0\0", 4) + "0X" + std::string("\3\0\0\0", 4) + "cpuK\4tQ" + offset + shape + stride +
         "\x89" + "ccollections\nOrderedDict\n)RtR";
}
std::string number(uint8_t value) { return {'K', static_cast<char>(value)}; }

class TorchState : public TemporaryFolder {
 protected:
  std::filesystem::path write(const std::string& pickle, const std::string& storage = std::string(16, '\1')) const {
    write_text(folder_ / "x.ckpt",
               archive_of({{"x/data.pkl", pickle}, {"x/byteorder", "little"}, {"x/data/0", storage}}));
    return folder_ / "x.ckpt";
  }
  // "FILE" for the path.
  std::string refusal(const std::filesystem::path& file, const std::string& key = "") const {
    try {
      TorchStateFile state(file, key);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), Exit::bad_input);
      std::string text = error.what();
      if (const auto at = text.find(file.string()); at != std::string::npos)
        text.replace(at, file.string().size(), "FILE");
      return text;
    }
    return "no error";
  }
  std::string refusal_of(const std::string& pickle) const { return refusal(write(pickle)); }
};

TEST_F(TorchState, WhatTorchSavedComesBack) {
  const TorchStateFile state(golden(), "model");
  std::vector<float> weight(12);
  for (std::size_t i = 0; i < 12; ++i) weight[i] = static_cast<float>(i) * 0.5f - 1.0f;
  ASSERT_EQ(state.tensors().size(), 13u);
  EXPECT_EQ(state.tensors()[0].name, "layer.weight");
  EXPECT_EQ(state.tensors()[0].shape, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(values<float>(state, "layer.weight"), weight);
  EXPECT_EQ(values<float>(state, "tied.weight"), weight);
  EXPECT_EQ(values<float>(state, "layer.bias"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(state.tensors()[3].shape, (std::vector<int64_t>{4, 3}));
  EXPECT_EQ(values<float>(state, "transposed"), (std::vector<float>{-1, 1, 3, -0.5, 1.5, 3.5, 0, 2, 4, 0.5, 2.5, 4.5}));
  EXPECT_EQ(values<float>(state, "every_second"), (std::vector<float>{-0.5, 0.5, 1.5, 2.5, 3.5, 4.5}));
  EXPECT_EQ(values<float>(state, "row"), (std::vector<float>{1, 1.5, 2, 2.5}));
  EXPECT_TRUE(values<float>(state, "empty").empty());
  EXPECT_EQ(state.tensors()[6].shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(values<double>(state, "scalar"), (std::vector<double>{2.5}));
  EXPECT_TRUE(state.tensors()[7].shape.empty());
  EXPECT_EQ(values<uint16_t>(state, "half"), (std::vector<uint16_t>{0x3800, 0xC000}));
  EXPECT_EQ(values<uint16_t>(state, "bfloat"), (std::vector<uint16_t>{0x3F00, 0xC000}));
  EXPECT_EQ(state.tensors()[9].dtype.code, kDLBfloat);
  EXPECT_EQ(values<int64_t>(state, "counter"), (std::vector<int64_t>{7}));
  EXPECT_EQ(values<uint8_t>(state, "bytes"), (std::vector<uint8_t>{1, 255}));
  EXPECT_EQ(values<uint8_t>(state, "mask"), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(state.tensors()[12].dtype.code, kDLBool);
}

TEST_F(TorchState, NestedDictionariesHaveJoinedNames) {
  EXPECT_EQ(TorchStateFile(golden(), "ema").tensors()[0].name, "shadow.w");
  EXPECT_EQ(TorchStateFile(golden(), "ema.shadow").tensors()[0].name, "w");
}

TEST_F(TorchState, GoesOnAsSafetensors) {
  const TorchStateFile state(golden(), "model");
  write_safetensors(folder_ / "m.safetensors", state.tensors());
  const SafetensorsFile written(folder_ / "m.safetensors");
  for (const TensorBytes& tensor : state.tensors()) {
    const TensorBytes* found = written.find(tensor.name);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(found->data, tensor.data));
  }
}

TEST_F(TorchState, WhatIsNoTensorIsNamed) {
  EXPECT_EQ(refusal(golden()),
            "[checkpoint] FILE holds a whole number as 'epoch'; choose a dictionary of tensors with --key: there are "
            "'model', 'ema'");
  EXPECT_EQ(refusal(golden(), "optimizer"),
            "[checkpoint] FILE has no dictionary 'optimizer'; choose a dictionary of tensors with --key: there are "
            "'model', 'ema'");
  EXPECT_EQ(refusal_of(std::string("\x80\x02].", 4)), "[checkpoint] FILE holds a list, not a dictionary of tensors");
  EXPECT_EQ(refusal_of(std::string("\x80\x02}.", 4)), "[checkpoint] FILE holds no tensor");
  EXPECT_EQ(refusal_of(std::string("\x80\x02}K\1Ns.", 8)),
            "[checkpoint] FILE has a whole number as a key where names are needed; a dictionary of tensors is needed: "
            "save the model's state_dict()");
}

// The classic attack: what os.system would be asked to do is not even looked at.
TEST_F(TorchState, NothingIsRun) {
  EXPECT_EQ(refusal_of(std::string("\x80\x02", 2) + "cos\nsystem\nX\4\0\0\0true\x85R."),
            "[checkpoint] FILE asks Python for 'os.system'; only dictionaries of tensors are read: save the model's "
            "state_dict()");
  EXPECT_THAT(refusal_of(std::string("\x80\x04\x8c\x08", 4) + "builtins" + "\x8c\x04" + "eval\x93."),
              HasSubstr("asks Python for 'builtins.eval'"));
  EXPECT_THAT(refusal_of(std::string("\x80\x02", 2) + "(i__main__\nX\n."), HasSubstr("the pickle operation 0x69"));
  EXPECT_THAT(refusal_of(std::string("\x80\x02}}b.", 6)), HasSubstr("holds no tensor"));
  EXPECT_THAT(refusal_of(std::string("\x80\x02", 2) + "ctorch\nFloatStorage\n)R."),
              HasSubstr("calls 'torch.FloatStorage' in a way that makes no tensor"));
}

TEST_F(TorchState, OtherFilesAreToldApart) {
  write_text(folder_ / "old", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.");
  EXPECT_THAT(refusal(folder_ / "old"), HasSubstr("FILE is of PyTorch's format before 1.6; write it anew in Python"));
  write_text(folder_ / "text", "hello");
  EXPECT_EQ(refusal(folder_ / "text"), "[checkpoint] FILE is not a file of torch.save");
  write_text(folder_ / "nothing", "");
  EXPECT_EQ(refusal(folder_ / "nothing"), "[checkpoint] FILE is not a file of torch.save");
  write_text(folder_ / "zip", archive_of({{"a.txt", "hello"}}));
  EXPECT_EQ(refusal(folder_ / "zip"), "[checkpoint] FILE is a zip archive, but none of torch.save: it has no data.pkl");
  EXPECT_THAT(refusal(folder_), HasSubstr("is not a file"));
  EXPECT_THAT(refusal(folder_ / "nowhere"), HasSubstr("cannot be opened"));
  write_text(folder_ / "big", archive_of({{"x/data.pkl", "."}, {"x/byteorder", "big"}}));
  EXPECT_THAT(refusal(folder_ / "big"), HasSubstr("big-endian"));
}

TEST_F(TorchState, TensorsStayInsideTheirStorage) {
  const auto shape = [](uint8_t extent) { return number(extent) + "\x85"; };
  EXPECT_EQ(refusal_of(pickle_of(tensor_of(shape(3), shape(1)))), "no error");  // elements 1, 2, 3 of 4
  const std::string beyond = "[checkpoint] FILE is damaged: tensor 'x' reaches beyond its storage";
  EXPECT_EQ(refusal_of(pickle_of(tensor_of(shape(4), shape(1)))), beyond);
  EXPECT_EQ(refusal_of(pickle_of(tensor_of(shape(2), shape(3)))), beyond);
  const std::string most = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
  EXPECT_EQ(refusal_of(pickle_of(tensor_of(shape(2), most + "\x85"))), beyond);
  EXPECT_EQ(refusal_of(pickle_of(tensor_of(shape(1), shape(1), most))), beyond);
  EXPECT_THAT(refusal_of(pickle_of(tensor_of(most + "\x85", shape(0)))), HasSubstr("larger than any memory"));
  EXPECT_THAT(refusal_of(pickle_of(tensor_of(shape(200), shape(0)))), HasSubstr("save it with .contiguous()"));
  EXPECT_THAT(refusal_of(pickle_of(tensor_of(shape(1), shape(1), "J\xff\xff\xff\xff"))), HasSubstr("is damaged"));
}

// A dictionary that holds itself, and one that holds another twice, thirty levels deep.
TEST_F(TorchState, NestingIsBounded) {
  EXPECT_THAT(refusal_of(std::string("\x80\x02}q\0X\1\0\0\0ah\0s.", 16)), HasSubstr("nests dictionaries too deeply"));
  std::string bomb("\x80\x02}q\0", 5);
  for (char level = 1; level <= 30; ++level) {
    bomb += std::string("}q") + level + std::string("X\1\0\0\0ah", 7) + static_cast<char>(level - 1) + "s" +
            std::string("X\1\0\0\0bh", 7) + static_cast<char>(level - 1) + "s";
  }
  EXPECT_THAT(refusal_of(bomb + "."), HasSubstr("more than a million"));
}

TEST_F(TorchState, ADamagedByteIsFound) {
  const std::string file = read_text(golden());
  std::string damaged = file;
  const auto key = damaged.find("layer.weight");
  damaged[key] = 'L';
  write_text(folder_ / "d.ckpt", damaged);
  EXPECT_EQ(refusal(folder_ / "d.ckpt"),
            "[checkpoint] FILE is damaged: the checksum of its entry 'state/data.pkl' is another");
  write_text(folder_ / "cut.ckpt", std::string_view(file).substr(0, file.size() / 2));
  EXPECT_EQ(refusal(folder_ / "cut.ckpt"),
            "[checkpoint] FILE is cut off or damaged: its zip directory does not fit the file");
}

std::string mutated(std::string text, std::mt19937& words) {
  for (uint32_t change = words() % 4 + 1; change > 0 && !text.empty(); --change) {
    const std::size_t at = words() % text.size();
    switch (words() % 5) {
      case 0:
        text[at] = static_cast<char>(words());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << words() % 8));
        break;
      case 2:
        text.erase(at, words() % 6 + 1);
        break;
      case 3:
        text.insert(at, text.substr(words() % text.size(), words() % 12));
        break;
      default:
        text[at] = "\xff\0\x7f(.\x85Rb"[words() % 8];
        break;
    }
  }
  return text;
}

// Refused or read, whole: every byte of what is read is touched.
TEST_F(TorchState, MutationsNeverCrash) {
  std::mt19937 words(7);
  const std::string whole = read_text(golden());
  const auto entries = read_zip(bytes_of(whole));
  const auto text_of = [](const ZipEntry& entry) {
    return std::string(reinterpret_cast<const char*>(entry.data.data()), entry.data.size());
  };
  const std::string pickle = text_of(entries.at("state/data.pkl"));
  std::size_t read = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::pair<std::string, std::string>> parts = {{"state/data.pkl", mutated(pickle, words)}};
    for (const auto& [name, entry] : entries) {
      if (name.starts_with("state/data/")) parts.emplace_back(name, text_of(entry));
    }
    write_text(folder_ / "m.ckpt", round % 4 == 0 ? mutated(whole, words) : archive_of(parts));
    try {
      unsigned sum = 0;
      for (const char* key : {"model", "ema"}) {
        const TorchStateFile state(folder_ / "m.ckpt", key);
        for (const TensorBytes& tensor : state.tensors()) {
          for (const std::byte byte : tensor.data) sum += std::to_integer<unsigned>(byte);
        }
      }
      read += sum > 0 ? 1 : 0;
    } catch (const Error& error) {
      ASSERT_EQ(error.exit_code(), Exit::bad_input) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 20u);
  EXPECT_GT(refused, 1000u);
}

// Where python3 has PyTorch: what it writes today is read as what the fixture holds.
TEST_F(TorchState, OfThePyTorchThatIsHere) {
  const std::string script = HEADROOM_SOURCE_DIR "/tests/golden/checkpoint/make_state.py";
  if (std::system("python3 -c 'import torch' 2> /dev/null") != 0) GTEST_SKIP() << "no PyTorch for python3 here";
  ASSERT_EQ(std::system(("python3 '" + script + "' '" + (folder_ / "now.ckpt").string() + "'").c_str()), 0);
  const TorchStateFile now(folder_ / "now.ckpt", "model"), then(golden(), "model");
  ASSERT_EQ(now.tensors().size(), then.tensors().size());
  for (std::size_t i = 0; i < now.tensors().size(); ++i) {
    EXPECT_EQ(now.tensors()[i].name, then.tensors()[i].name);
    EXPECT_TRUE(std::ranges::equal(now.tensors()[i].data, then.tensors()[i].data)) << now.tensors()[i].name;
  }
}

}  // namespace
}  // namespace headroom
