// headroom.files/1 and headroom.cache/1.

#include <cstring>
#include <gtest/gtest.h>
#include <thread>

#include "../record/temporary_folder.hpp"
#include "data/cache_session.hpp"
#include "data/sample_cache.hpp"
#include "data/services.hpp"

namespace headroom {
namespace {

class Files : public TemporaryFolder {
 protected:
  hr_error error_{};
};

TEST_F(Files, SizesAndBytes) {
  const std::string path = (folder_ / "a.bin").string();
  write_text(path, "0123456789");
  uint64_t bytes = 0;
  ASSERT_EQ(files_service().size(nullptr, path.c_str(), &bytes, &error_), HR_OK);
  EXPECT_EQ(bytes, 10u);
  char part[5] = "";
  ASSERT_EQ(files_service().pread(nullptr, path.c_str(), 3, part, 4, &error_), HR_OK);
  EXPECT_STREQ(part, "3456");
  EXPECT_EQ(files_service().pread(nullptr, path.c_str(), 8, part, 4, &error_), HR_DATA_CORRUPT);
  EXPECT_EQ(std::string(error_.message), "'" + path + "' ends at byte 10; 4 bytes from 8 were expected: copy it again");
}

TEST_F(Files, Failures) {
  uint64_t bytes = 0;
  const std::string missing = (folder_ / "missing").string(), folder = folder_.string();
  EXPECT_EQ(files_service().size(nullptr, missing.c_str(), &bytes, &error_), HR_NOT_FOUND);
  EXPECT_EQ(std::string(error_.message), "'" + missing + "' does not exist; check the path");
  EXPECT_EQ(files_service().pread(nullptr, missing.c_str(), 0, &bytes, 1, &error_), HR_NOT_FOUND);
  EXPECT_EQ(files_service().size(nullptr, folder.c_str(), &bytes, &error_), HR_IO);
  EXPECT_EQ(std::string(error_.message),
            "cannot read '" + folder + "': Is a directory; check the path and its permissions");
  const auto visit = [](void*, const char*, int32_t) { return 0; };
  EXPECT_EQ(files_service().list(nullptr, missing.c_str(), visit, nullptr, &error_), HR_NOT_FOUND);
  EXPECT_EQ(files_service().size(nullptr, nullptr, &bytes, &error_), HR_INVALID_ARGUMENT);
}

TEST_F(Files, ListsInByteOrderWithoutHiddenNames) {
  for (const char* name : {"b", "a10", "a9", ".hidden", "Z"}) write_text(folder_ / name, "");
  std::filesystem::create_directory(folder_ / "c");
  std::filesystem::create_symlink("nowhere", folder_ / "link");
  std::vector<std::string> seen;
  const auto visit = [](void* context, const char* name, int32_t is_folder) {
    auto& names = *static_cast<std::vector<std::string>*>(context);
    names.push_back(std::string(name) + (is_folder != 0 ? "/" : ""));
    return names.size() == 5 ? 1 : 0;
  };
  ASSERT_EQ(files_service().list(nullptr, folder_.c_str(), visit, &seen, &error_), HR_OK);
  EXPECT_EQ(seen, (std::vector<std::string>{"Z", "a10", "a9", "b", "c/"}));
}

TEST_F(Files, ListsNoCopiesOfTheHosts) {
  for (const char* name : {"a.h5", "a.h5.normalized.h5", "b.normalized.h5"}) write_text(folder_ / name, "");
  std::filesystem::create_directory(folder_ / "c");
  write_text(folder_ / "c.normalized.h5", "");
  std::vector<std::string> seen;
  const auto visit = [](void* context, const char* name, int32_t) {
    static_cast<std::vector<std::string>*>(context)->push_back(name);
    return 0;
  };
  ASSERT_EQ(files_service().list(nullptr, folder_.c_str(), visit, &seen, &error_), HR_OK);
  EXPECT_EQ(seen, (std::vector<std::string>{"a.h5", "b.normalized.h5", "c", "c.normalized.h5"}));
}

class CacheBlocks : public testing::Test {
 protected:
  void SetUp() override { CacheSession::of_process()->blocks.set_limit(100000); }
  void TearDown() override { CacheSession::of_process()->blocks.set_limit(0); }  // drops every block
  const hr_cache& api() { return cache_service(); }

  bool put(const std::string& key, uint64_t bytes, char fill) {
    hr_cache_block block{};
    if (api().reserve(nullptr, key.c_str(), bytes, &block, nullptr) != HR_OK) return false;
    std::memset(const_cast<void*>(block.data), fill, bytes);
    api().publish(nullptr, &block);
    api().release(nullptr, &block);
    return true;
  }
  bool has(const std::string& key) {
    hr_cache_block block{};
    if (api().lookup(nullptr, key.c_str(), &block, nullptr) != HR_OK) return false;
    api().release(nullptr, &block);
    return true;
  }
};

TEST_F(CacheBlocks, APublishedBlockIsFoundWithoutACopy) {
  hr_cache_block made{}, found{};
  ASSERT_EQ(api().reserve(nullptr, "k", 1000, &made, nullptr), HR_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(made.data) % 64, 0u);
  hr_error error{};
  EXPECT_EQ(api().lookup(nullptr, "k", &found, &error), HR_NOT_FOUND) << "nobody sees half a block";
  std::memset(const_cast<void*>(made.data), 'x', 1000);
  api().publish(nullptr, &made);
  ASSERT_EQ(api().lookup(nullptr, "k", &found, &error), HR_OK);
  EXPECT_EQ(found.data, made.data);
  EXPECT_EQ(found.bytes, 1000u);
  api().release(nullptr, &made);
  EXPECT_EQ(static_cast<const char*>(found.data)[999], 'x');
  api().release(nullptr, &found);
  EXPECT_TRUE(has("k"));
}

TEST_F(CacheBlocks, AreOfOneSessionAndEndWithIt) {
  auto mine = std::make_shared<CacheSession>();
  mine->blocks.set_limit(100000);
  auto session = Session::make(nullptr, mine);
  const hr_host* host = session->host_for("plugin");
  hr_cache_block block{};
  EXPECT_FALSE(mine->plugins_use_it);
  ASSERT_EQ(api().reserve(host, "k", 1000, &block, nullptr), HR_OK);
  EXPECT_TRUE(mine->plugins_use_it);
  api().publish(host, &block);
  EXPECT_FALSE(has("k"));
  EXPECT_EQ(mine->blocks.statistics().items, 1u);
  session.reset();
  mine.reset();
  api().release(host, &block);  // a plugin that is late
  EXPECT_EQ(block.data, nullptr);
}

TEST_F(CacheBlocks, TheLeastRecentlyUsedGoesFirst) {
  ASSERT_TRUE(put("a", 40000, 'a'));
  ASSERT_TRUE(put("b", 40000, 'b'));
  EXPECT_TRUE(has("a"));
  ASSERT_TRUE(put("c", 40000, 'c'));
  EXPECT_TRUE(has("a"));
  EXPECT_FALSE(has("b"));
  EXPECT_TRUE(has("c"));
}

TEST_F(CacheBlocks, ABlockInUseStaysAndCounts) {
  ASSERT_TRUE(put("a", 60000, 'a'));
  hr_cache_block held{};
  ASSERT_EQ(api().lookup(nullptr, "a", &held, nullptr), HR_OK);
  hr_cache_block refused{};
  hr_error error{};
  EXPECT_EQ(api().reserve(nullptr, "b", 60000, &refused, &error), HR_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "60000 bytes do not fit into the cache (data.cache_size)");
  CacheSession::of_process()->blocks.set_limit(0);
  EXPECT_EQ(static_cast<const char*>(held.data)[59999], 'a') << "shrinking takes nothing from a reader";
  api().release(nullptr, &held);
  CacheSession::of_process()->blocks.set_limit(100000);
  EXPECT_FALSE(has("a")) << "and takes it when the reader is done";
  EXPECT_TRUE(put("b", 60000, 'b'));
}

TEST_F(CacheBlocks, UnpublishedBlocksGiveTheirRoomBack) {
  for (int i = 0; i < 10; ++i) {
    hr_cache_block block{};
    ASSERT_EQ(api().reserve(nullptr, "k", 90000, &block, nullptr), HR_OK);
    api().release(nullptr, &block);
    EXPECT_EQ(block.data, nullptr);
    api().release(nullptr, &block);  // again: nothing
  }
  EXPECT_FALSE(has("k"));
}

TEST_F(CacheBlocks, TheFirstOfTwoPublishersWins) {
  hr_cache_block first{}, second{}, found{};
  ASSERT_EQ(api().reserve(nullptr, "k", 1000, &first, nullptr), HR_OK);
  ASSERT_EQ(api().reserve(nullptr, "k", 1000, &second, nullptr), HR_OK);
  api().publish(nullptr, &second);
  api().publish(nullptr, &first);
  ASSERT_EQ(api().lookup(nullptr, "k", &found, nullptr), HR_OK);
  EXPECT_EQ(found.data, second.data);
  api().release(nullptr, &found);
  api().release(nullptr, &first);
  api().release(nullptr, &second);
  EXPECT_TRUE(put("rest", 98000, 'r')) << "the loser's room is free again";
}

TEST_F(CacheBlocks, AcquireFindsOrReserves) {
  hr_cache_block made{}, found{}, refused{};
  int32_t fresh = 7;
  ASSERT_EQ(api().acquire(nullptr, "k", 1000, &made, &fresh, nullptr), HR_OK);
  EXPECT_EQ(fresh, 1);
  std::memset(const_cast<void*>(made.data), 'x', 1000);
  api().publish(nullptr, &made);
  ASSERT_EQ(api().acquire(nullptr, "k", 1000, &found, &fresh, nullptr), HR_OK);
  EXPECT_EQ(fresh, 0);
  EXPECT_EQ(found.data, made.data);
  hr_error error{};
  EXPECT_EQ(api().acquire(nullptr, "large", 200000, &refused, &fresh, &error), HR_OUT_OF_MEMORY);
  EXPECT_STREQ(error.message, "200000 bytes do not fit into the cache (data.cache_size)");
  EXPECT_EQ(api().acquire(nullptr, nullptr, 1, &refused, &fresh, &error), HR_INVALID_ARGUMENT);
  EXPECT_EQ(api().acquire(nullptr, "k", 1, &refused, nullptr, &error), HR_INVALID_ARGUMENT);
  api().release(nullptr, &made);
  api().release(nullptr, &found);
}

TEST_F(CacheBlocks, ThePolicyForPluginsDecidesWhatGoes) {
  CacheSession::of_process()->plugin_policy = CachePolicy::planned;
  ASSERT_TRUE(put("a", 60000, 'a'));
  EXPECT_FALSE(put("b", 60000, 'b'));
  CacheSession::of_process()->plugin_policy = CachePolicy::lru;
  EXPECT_FALSE(put("b", 60000, 'b')) << "what was put there to stay stays";
  EXPECT_TRUE(has("a"));
  EXPECT_TRUE(CacheSession::of_process()->plugins_use_it);
}

TEST_F(CacheBlocks, NothingFitsIntoNoCache) {
  CacheSession::of_process()->blocks.set_limit(0);
  EXPECT_FALSE(put("a", 1, 'a'));
  CacheSession::of_process()->blocks.set_limit(INT64_MAX);
  hr_cache_block block{};
  EXPECT_EQ(api().reserve(nullptr, "huge", UINT64_MAX, &block, nullptr), HR_OUT_OF_MEMORY);
}

TEST_F(CacheBlocks, ManyThreadsSeeWholeBlocks) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 500; ++i) {
        const int key = (i * 7 + t) % 20;
        hr_cache_block block{};
        if (api().lookup(nullptr, std::to_string(key).c_str(), &block, nullptr) == HR_OK) {
          const auto* bytes = static_cast<const char*>(block.data);
          ASSERT_EQ(bytes[0], static_cast<char>(key));
          ASSERT_EQ(bytes[9999], static_cast<char>(key));
          api().release(nullptr, &block);
        } else {
          put(std::to_string(key), 10000, static_cast<char>(key));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace headroom
