#include <cstring>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sstream>

#include "headroom/sdk/blocks.hpp"
#include "headroom/sdk/host.hpp"
#include "plugins/host.hpp"
#include "process_host.hpp"

namespace headroom {
namespace {

TEST(Services, UnknownOnesAreAbsent) {
  EXPECT_EQ(host()->get_service(host(), "headroom.telepathy/1"), nullptr);
  EXPECT_EQ(host()->get_service(host(), nullptr), nullptr);
}

TEST(Services, AMissingServiceIsASentence) {
  const sdk::Host view(host());
  try {
    view.file_size("x");
    FAIL();
  } catch (const sdk::Error& problem) {
    EXPECT_EQ(problem.status(), HR_UNSUPPORTED);
    EXPECT_NE(std::string(problem.what()).find("lacks the service headroom.files/1"), std::string::npos);
  }
}

TEST(Services, FoldersAboveRegisterTheirs) {
  static const int table = 0;
  register_service("headroom.test/1", &table);
  EXPECT_EQ(host()->get_service(host(), "headroom.test/1"), &table);
  EXPECT_EQ(host_for("another")->get_service(host_for("another"), "headroom.test/1"), &table);
}

TEST(Services, LogLinesCarryThePluginsId) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  sdk::Host(host_for("chatty")).warn("a {} that is no format");
  sdk::Host(host_for("chatty")).debug("not at this level");
  spdlog::set_default_logger(before);
  EXPECT_NE(text.str().find("[warning] [chatty] a {} that is no format"), std::string::npos) << text.str();
  EXPECT_EQ(text.str().find("not at this level"), std::string::npos);
}

TEST(Services, ScratchIsAlignedAndAccounted) {
  const sdk::Host view(host_for("scratchy"));
  {
    const sdk::Scratch scratch(view, 1000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch.data()) % 64, 0u);
    std::memset(scratch.data(), 1, 1000);
    EXPECT_EQ(scratch.as<float>().size(), 250u);
    EXPECT_EQ(Session::of_process()->plugin_memory().at("scratchy/scratch"), 1000);
  }
  EXPECT_EQ(Session::of_process()->plugin_memory().at("scratchy/scratch"), 0);
  EXPECT_THROW(sdk::Scratch(view, UINT64_MAX - 10), sdk::Error);
  view.account("index", 70);
  view.account("index", -20);
  EXPECT_EQ(Session::of_process()->plugin_memory().at("scratchy/index"), 50);
}

TEST(Services, ScratchWithoutAPlaceForIt) {
  const auto* memory = static_cast<const hr_memory*>(host()->get_service(host(), HR_MEMORY));
  hr_error error{};
  EXPECT_EQ(memory->scratch(host(), 8, nullptr, &error), HR_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the place for the result is NULL");
}

TEST(Services, Cancel) {
  const sdk::Host view(host());
  EXPECT_NO_THROW(view.throw_if_cancelled());
  cancel_flag() = true;
  EXPECT_THROW(view.throw_if_cancelled(), sdk::Error);
  cancel_flag() = false;
}

}  // namespace
}  // namespace headroom
