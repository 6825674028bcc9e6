// libheadroom_loader through its C functions: the batches of a run, without a copy, for whoever holds them.
#include "loader_library/loader_library.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <sstream>
#include <thread>

#include "../record/temporary_folder.hpp"
#include "data/opened_data.hpp"
#include "data/services.hpp"
#include "loader_trial.hpp"

namespace headroom {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Override> overrides(const Keys& keys) {
  std::vector<Override> all = {{"experiment.name", "trial"}, {"model.plugin", "none"}};
  for (const auto& [key, value] : keys) all.push_back({key, value});
  return all;
}

// As a run prepares and reads it, with one thread.
std::vector<std::string> batches_of_a_run(const Keys& keys, uint64_t epochs) {
  register_data_services();
  const Experiment experiment = load_keys(overrides(keys));
  const OpenedData data = open_data(experiment, choose_source(experiment, {}), make_session(experiment.data));
  const LoaderInput input =
      loader_input(data, find_statistics(data.statistics_request()).normalizer, [](const std::string&) {});
  LoaderOptions options = data.loader_options(/*training=*/true, 0);
  options.num_workers = 0;
  Loader loader(input.source, data.splits.train, input.applied, options);
  std::vector<std::string> all;
  for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
    loader.seek(epoch);
    while (const auto batch = loader.next()) {
      std::string text = std::to_string(batch->epoch) + "," + std::to_string(batch->first) + ",";
      for (const uint64_t index : batch->index) text += std::to_string(index) + " ";
      for (const DLTensor& field : batch->fields) text += bytes_of(field);
      all.push_back(text);
    }
  }
  return all;
}

std::vector<std::string> epochs_of(LoaderTrial& loader, int epochs, uint32_t wait_ms = 1000) {
  std::vector<std::string> all;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const std::vector<std::string> one = epoch_of(loader, wait_ms);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(LoaderLibrary, GivesTheBatchesOfARun) {
  for (const char* order : {"global", "grouped", "sequential"}) {
    SCOPED_TRACE(order);
    const Keys keys = toy_keys(
        {{"data.shuffle", order}, {"data.grouped", "{ runs = 3, run_length = 16 }"}, {"data.num_workers", "3"}});
    LoaderTrial loader(keys);
    ASSERT_EQ(loader.status, HR_OK) << loader.error.message;
    const std::vector<std::string> expected = batches_of_a_run(keys, 2);
    ASSERT_EQ(expected.size(), 44u);
    EXPECT_TRUE(epochs_of(loader, 2) == expected);
    EXPECT_EQ(loader.place().epoch, 2u);
  }
}

TEST(LoaderLibrary, GivesTheSameToWhoeverLooksAndComesAgain) {
  const Keys keys = toy_keys({{"data.num_workers", "2"}});
  LoaderTrial loader(keys);
  ASSERT_EQ(loader.status, HR_OK) << loader.error.message;
  EXPECT_TRUE(epochs_of(loader, 2, /*wait_ms=*/0) == batches_of_a_run(keys, 2));
}

class LoaderLibraryFile : public TemporaryFolder {};

TEST_F(LoaderLibraryFile, IsAnExperiment) {
  const std::string file = (folder_ / "trial.toml").string();
  write_text(file, R"([experiment]
name = "trial"
seed = 11
[model]
plugin = "not_there"
[data]
source = ")" HEADROOM_BUILD_DIR R"(/examples/toy_source.so"
normalize = "exact"
split = { train = 0.75, val = 0.25, test = 0.0, seed = 1 }
[data.options]
samples = 200
[train]
batch_size = 7
)");
  LoaderTrial of_file({}, "train", file), of_keys(toy_keys());
  ASSERT_EQ(of_file.status, HR_OK) << of_file.error.message;
  EXPECT_EQ(of_file.about().at("order"), of_keys.about().at("order"));
  EXPECT_TRUE(epochs_of(of_file, 2) == epochs_of(of_keys, 2));
}

TEST(LoaderLibrary, GoesOnInTheMiddleOfAnEpoch) {
  LoaderTrial whole(toy_keys()), rest(toy_keys());
  std::vector<std::string> expected = epochs_of(whole, 2);
  expected.erase(expected.begin(), expected.begin() + 5);
  ASSERT_EQ(rest.seek(0, 35), HR_OK) << rest.error.message;
  EXPECT_TRUE(epochs_of(rest, 2) == expected);
  EXPECT_EQ(rest.seek(1, 36), HR_INVALID_ARGUMENT);
  EXPECT_THAT(rest.error.message, HasSubstr("position 36 is inside a batch: with batch_size = 7"));
  EXPECT_EQ(rest.seek(1, 154), HR_INVALID_ARGUMENT);
  EXPECT_THAT(rest.error.message, HasSubstr("beyond the 150 samples"));
}

TEST(LoaderLibrary, EvaluatesInOrderAndAlwaysTheSame) {
  LoaderTrial loader(toy_keys(), "val");
  ASSERT_EQ(loader.status, HR_OK) << loader.error.message;
  EXPECT_FALSE(loader.about().at("training"));
  EXPECT_EQ(loader.about().at("samples"), 50);
  std::vector<std::string> first = epoch_of(loader), second = epoch_of(loader);
  ASSERT_EQ(first.size(), 8u);
  EXPECT_TRUE(first == second);
}

TEST(LoaderLibrary, DescribesItself) {
  LoaderTrial loader(toy_keys());
  const nlohmann::json about = loader.about();
  EXPECT_EQ(about.at("source"), "toy_source");
  EXPECT_EQ(about.at("samples"), 150);
  EXPECT_EQ(about.at("batches"), 22);
  ASSERT_EQ(about.at("fields").size(), 2u);
  const nlohmann::json &x = about["fields"][0], &y = about["fields"][1];
  EXPECT_EQ(x.at("name"), "x");
  EXPECT_EQ(x.at("dtype"), "float32");
  EXPECT_EQ(x.at("shape"), nlohmann::json({3}));
  EXPECT_EQ(x.at("mean").size(), 3u);
  EXPECT_TRUE(y.at("mean").is_null()) << "y is as measured";
}

TEST(LoaderLibrary, KnowsWhatDecidesItsOrder) {
  const auto order = [](const Keys& more) {
    return LoaderTrial(toy_keys(more)).about().at("order").get<std::string>();
  };
  const std::string same = order({});
  for (const auto& [key, value] :
       Keys{{"experiment.seed", "12"}, {"data.normalize", "off"}, {"data.options", "{ samples = 199 }"}})
    EXPECT_NE(order({{key, value}}), same) << key;
  for (const auto& [key, value] :
       Keys{{"train.batch_size", "5"}, {"data.num_workers", "0"}, {"data.cache_size", "1 MiB"}})
    EXPECT_EQ(order({{key, value}}), same) << key;
}

TEST(LoaderLibrary, CopiesNothing) {
  LoaderTrial loader(toy_keys());
  std::set<const void*> places;
  for (int epoch = 0; epoch < 3; ++epoch) {
    while (const LoaderTrial::Held batch = loader.next()) {
      const Tensor tensor = tensor_of(batch, 0);
      DLManagedTensor* older = nullptr;
      ASSERT_EQ(hr_loader_tensor_unversioned(batch.get(), 0, &older, nullptr), HR_OK);
      EXPECT_EQ(tensor->dl_tensor.data, older->dl_tensor.data);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(older->dl_tensor.data) % 64, 0u);
      EXPECT_EQ(older->dl_tensor.strides[0], 3);
      EXPECT_EQ(older->dl_tensor.strides[1], 1);
      EXPECT_EQ(tensor->flags, 0u);
      places.insert(older->dl_tensor.data);
      hr_loader_drop_unversioned(older);
    }
  }
  EXPECT_LE(places.size(), loader.about().at("slots").get<size_t>()) << "66 batches share the slots";
}

TEST(LoaderLibrary, BatchesMayBeHeldForEver) {
  LoaderTrial loader(toy_keys());
  const std::vector<std::string> expected = epochs_of(loader, 1);
  ASSERT_EQ(loader.seek(0, 0), HR_OK);
  std::vector<Tensor> held;
  std::vector<std::string> values;
  while (const LoaderTrial::Held batch = loader.next()) {
    held.push_back(tensor_of(batch, 0));
    values.push_back(bytes_of(held.back()->dl_tensor));
  }
  ASSERT_EQ(held.size(), 22u);
  EXPECT_EQ(loader.place().held, 22u) << "a tensor holds its batch";
  EXPECT_TRUE(epoch_of(loader).size() == 22u);
  std::thread elsewhere([&] { held.resize(11); });
  elsewhere.join();
  EXPECT_EQ(loader.place().held, 11u);
  loader.close();
  for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(bytes_of(held[i]->dl_tensor), values[i]) << i;
}

TEST(LoaderLibrary, RefusesInTheRunnersWords) {
  const auto sentence = [](const Keys& more, hr_status expected = HR_INVALID_ARGUMENT, const char* split = "train") {
    const LoaderTrial loader(toy_keys(more), split);
    EXPECT_EQ(loader.status, expected);
    return std::string(loader.error.message);
  };
  EXPECT_THAT(sentence({{"data.options.sample", "3"}}), HasSubstr("; did you mean samples"));
  EXPECT_THAT(sentence({{"data.shuffle", "\"globl\""}}), HasSubstr("did you mean \"global\""));
  EXPECT_THAT(sentence({{"data.source", "\"no_such\""}}, HR_UNSUPPORTED), HasSubstr("no plugin 'no_such' in"));
  EXPECT_THAT(sentence({}, HR_INVALID_ARGUMENT, "test"), HasSubstr("no split 'test' with samples"));
  const LoaderTrial without_source(Keys{{"data.num_workers", "1"}});
  EXPECT_THAT(without_source.error.message, HasSubstr("data.source is missing"));
  const LoaderTrial no_file({}, "train", "/nowhere/trial.toml");
  EXPECT_THAT(no_file.error.message, HasSubstr("/nowhere/trial.toml does not exist"));
}

TEST(LoaderLibrary, RefusesNull) {
  hr_error error{};
  hr_loader* loader = nullptr;
  hr_loader_batch* batch = nullptr;
  int32_t outcome = 0;
  EXPECT_EQ(hr_loader_open(nullptr, &loader, &error), HR_INVALID_ARGUMENT);
  EXPECT_EQ(hr_loader_next(nullptr, 0, &outcome, &batch, &error), HR_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "[loader] the loader is NULL");
  EXPECT_EQ(hr_loader_seek(nullptr, 0, 0, nullptr), HR_INVALID_ARGUMENT);
  EXPECT_EQ(hr_loader_tensor(nullptr, 0, nullptr, nullptr), HR_INVALID_ARGUMENT);
  hr_loader_close(nullptr);
  hr_loader_release(nullptr);
  hr_loader_drop_tensor(nullptr);
  LoaderTrial open(toy_keys());
  const LoaderTrial::Held first = open.next();
  DLManagedTensorVersioned* tensor = nullptr;
  EXPECT_EQ(hr_loader_tensor(first.get(), 2, &tensor, &error), HR_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("there is no field 2; the batch has 2 fields"));
}

auto entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// The kernel lists a thread for a moment after it was joined.
bool threads_fall_to(std::ptrdiff_t most) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (entries("/proc/self/task") > most) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(LoaderLibrary, LeavesNothingBehind) {
  const auto threads = entries("/proc/self/task");
  { LoaderTrial first(toy_keys()); }
  const auto files = entries("/proc/self/fd");
  for (int i = 0; i < 100; ++i) {
    LoaderTrial loader(toy_keys());
    ASSERT_TRUE(loader.next() != nullptr);
  }
#ifdef __SANITIZE_THREAD__
  constexpr int sanitizers_own = 1;  // it starts with the first other thread
#else
  constexpr int sanitizers_own = 0;
#endif
  EXPECT_TRUE(threads_fall_to(threads + sanitizers_own))
      << entries("/proc/self/task") << " threads, " << threads << " before";
  EXPECT_EQ(entries("/proc/self/fd"), files);
}

std::string output_of(const std::string& command) {
  struct Close {
    void operator()(FILE* pipe) const { pclose(pipe); }
  };
  const std::unique_ptr<FILE, Close> pipe(popen(command.c_str(), "r"));
  std::string text;
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof buffer, pipe.get())) text.append(buffer, count);
  return text;
}

TEST(LoaderLibrary, ExportsItsFunctionsAlone) {
  const std::string library = HEADROOM_BUILD_DIR "/lib/libheadroom_loader.so";
  if (std::system("command -v nm readelf >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs nm and readelf";
  std::istringstream lines(output_of("nm -D --defined-only '" + library + "'"));
  std::string address, kind, name;
  size_t functions = 0;
  for (; lines >> address >> kind >> name; ++functions) EXPECT_TRUE(name.starts_with("hr_loader_")) << name;
  EXPECT_EQ(functions, 12u);
  const std::string needed = output_of("readelf -d '" + library + "'");
  EXPECT_THAT(needed, HasSubstr("libc.so"));
  for (const char* other : {"libtorch", "libc10", "libjemalloc", "libpython"})
    EXPECT_THAT(needed, Not(HasSubstr(other)));
}

}  // namespace
}  // namespace headroom
