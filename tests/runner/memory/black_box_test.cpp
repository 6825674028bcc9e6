#include "memory/black_box.hpp"

#include <atomic>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>

#include "error.hpp"
#include "memory/crash_site.hpp"
#include "memory/growth.hpp"
#include "stand_in/stand_in.hpp"

namespace headroom {
namespace {

class BlackBoxTest : public WithFolder {
 protected:
  std::filesystem::path file() const { return folder_ / "black_box"; }

  void poke(off_t at, const std::string& bytes) const {
    const int descriptor = open(file().c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(descriptor, bytes.data(), bytes.size(), at), static_cast<ssize_t>(bytes.size()));
    close(descriptor);
  }
};

// A record whose every number says which one it is.
BlackBoxRecord numbered(int64_t number) {
  BlackBoxRecord record;
  record.held_bytes = record.limit_bytes = record.room_bytes = number;
  record.slack_bytes = record.other_bytes = number;
  record.live_bytes.fill(number);
  return record;
}

bool is_whole(const BlackBoxRecord& record) {
  BlackBoxRecord expected = numbered(record.held_bytes);
  return record.limit_bytes == expected.limit_bytes && record.room_bytes == expected.room_bytes &&
         record.slack_bytes == expected.slack_bytes && record.other_bytes == expected.other_bytes &&
         record.live_bytes == expected.live_bytes;
}

TEST_F(BlackBoxTest, KeepsWhatItWasTold) {
  BlackBox box(file());
  box.set_phase(Phase::backward);
  box.set_position(412, 3);
  box.set_micro_batch(8);
  box.push(numbered(7));
  box.set_phase(Phase::optimizer);
  box.set_position(413, 4);
  const auto reading = read_black_box(file());
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->pid, getpid());
  EXPECT_EQ(reading->phase, Phase::optimizer) << "newer than the last record";
  EXPECT_EQ(reading->step, 413);
  EXPECT_EQ(reading->epoch, 4);
  EXPECT_EQ(reading->crash_site, "");
  ASSERT_EQ(reading->records.size(), 1u);
  const BlackBoxRecord& record = reading->records.front();
  EXPECT_TRUE(is_whole(record));
  EXPECT_EQ(record.held_bytes, 7);
  EXPECT_EQ(record.phase, Phase::backward);
  EXPECT_EQ(record.step, 412);
  EXPECT_EQ(record.epoch, 3);
  EXPECT_EQ(record.micro_batch, 8);
  EXPECT_GE(record.time_ms, reading->started_ms);
}

TEST_F(BlackBoxTest, NamesThePluginCallItsThreadIsIn) {
  BlackBox box(file());
  const auto call = [&] { return read_black_box(file())->plugin_call; };
  const PluginCall before("early", "open");
  PluginCall::keep_in(box.plugin_call());
  EXPECT_EQ(call(), "early open") << "begun before anybody asked";
  {
    const PluginCall outer("trial", "step");
    EXPECT_EQ(call(), "trial step");
    {
      const PluginCall inner("source", "read");
      EXPECT_EQ(call(), "source read");
      std::thread([] { const PluginCall elsewhere("other", "read"); }).join();
      EXPECT_EQ(call(), "source read") << "readers have calls of their own";
    }
    EXPECT_EQ(call(), "trial step");
    const std::string endless(1000, 'x');
    const PluginCall long_name(endless, "step");
    EXPECT_EQ(call(), endless.substr(0, box.plugin_call().size() - 1));
  }
  EXPECT_EQ(call(), "early open");
  PluginCall::keep_in({});
  EXPECT_EQ(call(), "");
  const PluginCall unseen("trial", "step");
  EXPECT_EQ(call(), "");
}

TEST_F(BlackBoxTest, TheNewestThousandRemain) {
  BlackBox box(file());
  for (int64_t i = 0; i < 3000; ++i) box.push(numbered(i));
  const auto reading = read_black_box(file());
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->records.size(), 1024u);
  for (size_t i = 0; i < 1024; ++i) EXPECT_EQ(reading->records[i].held_bytes, static_cast<int64_t>(3000 - 1024 + i));
}

TEST_F(BlackBoxTest, OutlivesItsWritersSigkill) {
  const pid_t child = fork();
  if (child == 0) {
    BlackBox box(file());
    box.set_phase(Phase::evaluating);
    for (int64_t i = 0; i < 100; ++i) box.push(numbered(i));
    std::ofstream(folder_ / "ready") << getpid();
    for (int64_t i = 100;; ++i) box.push(numbered(i));
  }
  ASSERT_EQ(id_in("ready"), child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto reading = read_black_box(file());
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->pid, child);
  EXPECT_EQ(reading->phase, Phase::evaluating);
  ASSERT_GE(reading->records.size(), 100u);
  for (size_t i = 0; i < reading->records.size(); ++i) {
    EXPECT_TRUE(is_whole(reading->records[i]));
    if (i > 0) {
      EXPECT_EQ(reading->records[i].held_bytes, reading->records[i - 1].held_bytes + 1);
    }
  }
}

TEST_F(BlackBoxTest, IsReadWhileItIsWritten) {
  BlackBox box(file());
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int64_t i = 0; !done; ++i) box.push(numbered(i));
  });
  size_t seen = 0;
  for (int reads = 0; reads < 200 || seen == 0; ++reads) {
    const auto reading = read_black_box(file());
    ASSERT_TRUE(reading);
    seen += reading->records.size();
    for (const BlackBoxRecord& record : reading->records) ASSERT_TRUE(is_whole(record)) << record.held_bytes;
  }
  done = true;
  writer.join();
}

TEST_F(BlackBoxTest, TornRecordsAreLeftOut) {
  BlackBox box(file());
  for (int64_t i = 0; i < 3; ++i) box.push(numbered(i));
  constexpr off_t header = 512, slot = 8 + sizeof(BlackBoxRecord);
  poke(header + slot, std::string("\3\0\0\0\0\0\0\0", 8));  // the second is being written
  const auto reading = read_black_box(file());
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->records.size(), 2u);
  EXPECT_EQ(reading->records[0].held_bytes, 0);
  EXPECT_EQ(reading->records[1].held_bytes, 2);
}

TEST_F(BlackBoxTest, AnotherFileIsNone) {
  EXPECT_FALSE(read_black_box(file())) << "there is none";
  std::ofstream(file()) << "";
  EXPECT_FALSE(read_black_box(file())) << "empty";
  EXPECT_FALSE(read_black_box(folder_)) << "a folder";
  { BlackBox box(file()); }
  ASSERT_TRUE(read_black_box(file()));
  poke(8, std::string(1, '\2'));
  EXPECT_FALSE(read_black_box(file())) << "another format";
  poke(8, std::string(1, '\1'));
  ASSERT_TRUE(read_black_box(file()));
  poke(0, "x");
  EXPECT_FALSE(read_black_box(file())) << "no magic";
  { BlackBox box(file()); }
  std::filesystem::resize_file(file(), 4096);
  EXPECT_FALSE(read_black_box(file())) << "cut short";
}

TEST_F(BlackBoxTest, OddPhasesAreTheLast) {
  BlackBox box(file());
  box.set_phase(static_cast<Phase>(77));
  EXPECT_EQ(read_black_box(file())->phase, Phase::finished);
  EXPECT_EQ(phase_name(static_cast<Phase>(77)), "finished");
  EXPECT_EQ(phase_name(Phase::epoch_end), "epoch end");
}

// A run that is being taken down lets go of one owner after the other.
TEST_F(BlackBoxTest, TheLastRecordIsOfBeforeTheEnd) {
  BlackBox box(file());
  box.push(numbered(1));
  box.set_phase(Phase::finished);
  box.push(numbered(2));
  EXPECT_EQ(read_black_box(file())->records.size(), 1u);
}

TEST_F(BlackBoxTest, ReplacesAnOlderOneThatIsStillMapped) {
  BlackBox older(file());
  older.push(numbered(1));
  BlackBox newer(file());
  newer.push(numbered(2));
  older.push(numbered(3));  // to a file without a name
  const auto reading = read_black_box(file());
  ASSERT_EQ(reading->records.size(), 1u);
  EXPECT_EQ(reading->records.front().held_bytes, 2);
}

TEST_F(BlackBoxTest, SaysWhenItCannotBeMade) {
  try {
    BlackBox box(folder_ / "absent" / "black_box");
    FAIL() << "made in a folder that is not there";
  } catch (const Error& problem) {
    EXPECT_EQ(problem.exit_code(), Exit::cannot_write);
    EXPECT_NE(std::string(problem.what()).find("absent/black_box"), std::string::npos) << problem.what();
  }
}

constexpr int64_t mib = 1 << 20;
constexpr size_t activations = static_cast<size_t>(Owner::activations), slack = owner_count, other = owner_count + 1;

std::vector<BlackBoxRecord> records(size_t count, int64_t (*activation_bytes)(size_t), int64_t (*other_bytes)(size_t)) {
  std::vector<BlackBoxRecord> list(count);
  for (size_t i = 0; i < count; ++i) {
    list[i].time_ms = static_cast<int64_t>(i) * 250;
    list[i].live_bytes[activations] = activation_bytes(i);
    list[i].other_bytes = other_bytes(i);
  }
  return list;
}

TEST(Growth, ALeakIsFoundBehindWhatComesAndGoes) {
  const auto leak = what_grew(records(
      400, [](size_t i) { return (i % 4 < 2 ? 0 : 500) * mib; },
      [](size_t i) { return static_cast<int64_t>(i) * mib; }));
  ASSERT_TRUE(leak);
  EXPECT_EQ(holder_name(leak->holder), "other");
  EXPECT_EQ(leak->rise_bytes, 200 * mib);  // the largest of the end against the largest of the first half
  EXPECT_DOUBLE_EQ(leak->seconds, 399 * 0.25);
}

TEST(Growth, ASuddenRiseIsFound) {
  const auto rise = what_grew(records(
      400, [](size_t i) { return (i == 399 ? 900 : 500) * mib; }, [](size_t) { return 10 * mib; }));
  ASSERT_TRUE(rise);
  EXPECT_EQ(rise->holder, activations);
  EXPECT_EQ(rise->rise_bytes, 400 * mib);
}

TEST(Growth, SteadyIsNone) {
  const auto constant = [](size_t) { return 10 * mib; };
  EXPECT_FALSE(what_grew(records(
      400, [](size_t i) { return (i % 4 < 2 ? 0 : 500) * mib; }, constant)));
  EXPECT_FALSE(what_grew(records(
      400, [](size_t i) { return static_cast<int64_t>(400 - i) * mib; }, constant)));
  EXPECT_FALSE(what_grew(records(1, constant, constant)));
  EXPECT_FALSE(what_grew({}));
}

TEST(Growth, EveryHolderHasANameAndAKnob) {
  BlackBoxRecord record;
  for (size_t holder = 0; holder < owner_count; ++holder)
    record.live_bytes[holder] = 100 - static_cast<int64_t>(holder);
  record.slack_bytes = 1000;
  record.other_bytes = 0;
  const auto order = largest_holders(record);
  ASSERT_EQ(order.size(), owner_count + 1);
  EXPECT_EQ(order[0], slack);
  EXPECT_EQ(order[1], 0u);
  for (size_t holder = 0; holder < holder_count; ++holder) {
    EXPECT_FALSE(holder_name(holder).empty());
    EXPECT_FALSE(holder_knob(holder).empty());
  }
  EXPECT_EQ(holder_name(other), "other");
}

}  // namespace
}  // namespace headroom
