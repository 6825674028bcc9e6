// The file that trace viewers open.
#include "profile/trace.hpp"

#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "../record/temporary_folder.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

class TraceTest : public TemporaryFolder {
 protected:
  Json written(const Trace& trace) const {
    trace.write(folder_ / "trace.json", "headroom \"trial\"");
    return Json::parse(read_text(folder_ / "trace.json"));
  }
  static std::vector<Json> of_kind(const Json& file, const std::string& kind) {
    std::vector<Json> events;
    for (const Json& event : file.at("traceEvents")) {
      if (event.at("ph") == kind) events.push_back(event);
    }
    return events;
  }
};

TEST_F(TraceTest, TellsEverySpanInMicrosecondsFromTheFirst) {
  Trace trace;
  trace.add(SpanKind::operator_call, "aten::mm", 7'001'500, 7'002'007);
  trace.add(SpanKind::step, "step", 7'000'000, 9'000'000);
  const Json file = written(trace);
  const std::vector<Json> events = of_kind(file, "X");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("name"), "aten::mm");
  EXPECT_EQ(events[0].at("cat"), "operator");
  EXPECT_EQ(events[0].at("ts"), 1.5);
  EXPECT_EQ(events[0].at("dur"), 0.507);
  EXPECT_EQ(events[1].at("cat"), "step");
  EXPECT_EQ(events[1].at("ts"), 0.0);
  EXPECT_EQ(events[1].at("dur"), 2000.0);
  EXPECT_EQ(events[0].at("tid"), events[1].at("tid"));
}

TEST_F(TraceTest, NamesTheProcessAndItsThreads) {
  Trace trace;
  trace.add(SpanKind::step, "step", 0, 10);
  std::thread([&] { trace.add(SpanKind::plugin_call, "source read", 0, 5); }).join();
  std::map<int, std::string> threads;
  std::string process;
  const Json file = written(trace);
  for (const Json& event : of_kind(file, "M")) {
    if (event.at("name") == "process_name") process = event.at("args").at("name");
    if (event.at("name") == "thread_name") threads[event.at("tid")] = event.at("args").at("name");
  }
  EXPECT_EQ(process, "headroom \"trial\"");
  ASSERT_EQ(threads.size(), 2u);
  for (const Json& event : of_kind(file, "X"))
    EXPECT_EQ(threads.at(event.at("tid")) == "steps", event.at("cat") == "step") << event;
}

TEST_F(TraceTest, ATraceThatIsFullLeavesOutOperatorsAndSaysHowMany) {
  Trace trace(/*most_operator_calls=*/2);
  for (int64_t i = 0; i < 5; ++i) trace.add(SpanKind::operator_call, "aten::add", i, i + 1);
  trace.add(SpanKind::step, "step", 0, 5);
  EXPECT_EQ(trace.left_out(), 3);
  const Json file = written(trace);
  EXPECT_EQ(of_kind(file, "X").size(), 3u);
  EXPECT_EQ(file.at("otherData").at("left_out"), 3);
}

TEST_F(TraceTest, NamesThatAreNoUtf8AndATraceOfNothingAreJsonToo) {
  Trace trace;
  EXPECT_TRUE(of_kind(written(trace), "X").empty());
  trace.add(SpanKind::operator_call, "odd \xff\n\"name\"", 0, 1);
  EXPECT_EQ(of_kind(written(trace), "X").size(), 1u);
}

TEST_F(TraceTest, AFolderThatIsNotThereIsASentence) {
  const Trace trace;
  EXPECT_NE(sentence_of([&] { trace.write(folder_ / "missing/trace.json", ""); }).find("missing/trace.json"),
            std::string::npos);
}

}  // namespace
}  // namespace headroom
