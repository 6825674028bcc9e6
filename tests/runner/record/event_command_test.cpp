#include "record/event_command.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sstream>
#include <unistd.h>

#include "record/run_log.hpp"
#include "temporary_folder.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Events : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    std::signal(SIGPIPE, SIG_IGN);  // as Headroom's programs do
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  EventCommand::Say say() {
    return [this](const std::string& line) { said_.push_back(line); };
  }
  void send(const std::string& command, int lines, std::chrono::milliseconds patience = std::chrono::seconds(60)) {
    EventCommand events(command, folder_, say());
    events.patience = patience;
    for (int i = 0; i < lines; ++i) events.line("{\"line\": " + std::to_string(i) + std::string(1000, ' ') + "}");
  }
  std::vector<std::string> said_;
};

TEST_F(Events, ReachTheCommandInOrder) {
  send("cat > '" + file("out") + "'; printf %s \"$HEADROOM_RUN_FOLDER\" > '" + file("run") + "'", 100);
  const std::string text = read_text(folder_ / "out");
  EXPECT_EQ(std::ranges::count(text, '\n'), 100);
  EXPECT_TRUE(text.starts_with("{\"line\": 0 "));
  EXPECT_NE(text.find("}\n{\"line\": 99 "), std::string::npos);
  EXPECT_EQ(read_text(folder_ / "run"), folder_.string());
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(Events, ACommandThatDiesIsSaidOnce) {
  EventCommand events("exit 3", folder_, say());
  for (int i = 0; i < 1000 && said_.empty(); ++i) {
    events.line("{}");
    usleep(2000);
  }
  events.line("{}");
  EXPECT_THAT(said_, ElementsAre(HasSubstr("it ended with exit code 3; the run goes on")));
}

TEST_F(Events, ACommandThatIsNotThereIsSaid) {
  EventCommand events("/nonexistent/tracker 2> /dev/null", folder_, say());
  for (int i = 0; i < 1000 && said_.empty(); ++i) {
    events.line("{}");
    usleep(2000);
  }
  EXPECT_THAT(said_, ElementsAre(HasSubstr("it ended with exit code 127")));
}

// 4 MB for a program that reads none of it: nothing waits, and at the end it is not waited for long.
TEST_F(Events, ACommandThatHangsHoldsNothingUp) {
  send("echo $$ > '" + file("pid") + "'; exec sleep 1000", 4000, std::chrono::milliseconds(300));
  ASSERT_EQ(said_.size(), 2u);
  EXPECT_THAT(said_[0], HasSubstr("did not end within 300 ms of the run's end, and was stopped"));
  EXPECT_THAT(said_[1], HasSubstr("events were left out"));
  EXPECT_NE(kill(std::stoi(read_text(folder_ / "pid")), 0), 0) << "it is gone";
}

TEST_F(Events, OneThatIsSlowGetsWholeLines) {
  send("sleep 0.3; cat > '" + file("out") + "'", 4000);
  std::istringstream text(read_text(folder_ / "out"));
  int lines = 0;
  for (std::string line; std::getline(text, line); ++lines)
    ASSERT_EQ(line.find("{\"line\": " + std::to_string(lines) + " "), 0u) << line.substr(0, 40);
  EXPECT_GT(lines, 900);
  EXPECT_LT(lines, 4000);
  EXPECT_THAT(said_, ElementsAre(HasSubstr(std::to_string(4000 - lines) + " events were left out")));
}

TEST_F(Events, TheCommandHoldsNoFileOfOurs) {
  const int ours = open(file("lock").c_str(), O_RDWR | O_CREAT, 0600);
  send("ls -l /proc/self/fd > '" + file("out") + "'; cat > /dev/null", 1);
  close(ours);
  EXPECT_THAT(read_text(folder_ / "out"), AllOf(HasSubstr(file("out")), Not(HasSubstr(file("lock")))));
}

TEST_F(Events, ALogSendsWhatItWrites) {
  const RunFolder run = RunFolder::create(folder_, "x");
  {
    RunLog log(run);
    log.send_events_to("cat > '" + file("out") + "'");
    log.event("start", {{"a", 1}});
    log.scalars(5, 1, {{"val/loss", 0.5}});
  }
  EXPECT_FALSE(read_text(folder_ / "out").empty());
  EXPECT_EQ(read_text(folder_ / "out"), read_text(run.path() / "events.jsonl"));
}

}  // namespace
}  // namespace headroom
