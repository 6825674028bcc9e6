// Pages in headless Chromium, TensorBoard's files with the real package. Skipped where those are not installed.
#include <cstdlib>
#include <gmock/gmock.h>

#include "report/run_report.hpp"
#include "report/sweep_report.hpp"
#include "shell.hpp"
#include "written_run.hpp"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Browser : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    browser_ = shell("command -v chromium || command -v chromium-browser || command -v google-chrome").out;
    if (browser_.empty()) GTEST_SKIP() << "no Chromium: apt-get install chromium";
    browser_.pop_back();
  }
  // The page as it is once its script has run; `probe` is JavaScript whose value becomes the page's title.
  std::string title_of(const fs::path& page, const std::string& probe, int width) const {
    const fs::path frame = folder_ / "frame.html";
    write_text(
        frame,
        "<!DOCTYPE html><iframe id=\"f\" src=\"file://" + page.string() + "\" width=\"" + std::to_string(width) +
            "\" height=\"800\"></iframe><script>const f = document.getElementById('f');"
            "f.onload = () => { const page = f.contentWindow, d = f.contentDocument; document.title = 'answer:' + (" +
            probe + "); };</script>");
    const Answer answer = shell("timeout 100 '" + browser_ +
                                "' --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files "
                                "--user-data-dir='" +
                                (folder_ / "profile").string() + "' --virtual-time-budget=5000 --dump-dom 'file://" +
                                frame.string() + "' 2>/dev/null");
    const size_t at = answer.out.find("answer:");
    return at == std::string::npos ? "no answer: " + answer.out
                                   : answer.out.substr(at + 7, answer.out.find("</title>") - at - 7);
  }
  std::string browser_;
};

constexpr const char* fits = "d.documentElement.scrollWidth <= page.innerWidth";
constexpr const char* hovered =
    "(() => { const hit = d.querySelector('.plot .hit'), box = hit.getBoundingClientRect();"
    "hit.dispatchEvent(new page.PointerEvent('pointermove', { clientX: box.left + box.width, clientY: box.top + 5 }));"
    "return d.querySelector('.plot .tip').textContent.replaceAll('\\n', '|') })()";

TEST_F(Browser, ShowsARunOnAPhoneAndADesk) {
  const std::string long_name(120, 'n');
  const fs::path run = write_run(folder_, {.name = "emg",
                                           .data = {{"cache", {{"policy", long_name}, {"hits", 12}}},
                                                    {"loader", {{"a_rather_long_name_of_a_stage", {{"x", 1}}}}}}});
  write_run_report(run);
  const fs::path page = run / report_file;
  for (const int width : {360, 1200}) EXPECT_EQ(title_of(page, fits, width), "true") << width;
  EXPECT_EQ(
      title_of(page, "[...d.querySelectorAll('svg[role=img]')].every(s => s.getBoundingClientRect().width > 100)", 360),
      "true");
  // The tip reads the last values back from the picture: loss_step 1/20, train 0.5, val 0.25 + 1/20.
  EXPECT_EQ(title_of(page, hovered, 1200), "20|train, between log lines: 0.05|train: 0.5|val: 0.3");
}

TEST_F(Browser, SortsTheTrialsOfASweep) {
  nlohmann::json trials = nlohmann::json::array();
  for (int i = 0; i < 12; ++i)
    trials.push_back({{"id", std::to_string(i)},
                      {"state", "finished"},
                      {"peak_bytes", ((i * 7) % 12 + 1) << 20},
                      {"metric", 12 - i},
                      {"samples_per_second", 10 + i},
                      {"set", {{"a", std::to_string(i % 4)}, {"b", std::to_string(i / 4)}}}});
  write_text(folder_ / "results.json",
             nlohmann::json{{"name", "s"}, {"metric", "val/loss"}, {"best", "11"}, {"trials", trials}}.dump());
  write_sweep_report(folder_);
  const fs::path page = folder_ / report_file;
  EXPECT_EQ(title_of(page, fits, 360), "true");
  EXPECT_EQ(
      title_of(page,
               "(() => { const heads = [...d.querySelectorAll('.sortable thead th')];"
               "heads.find(h => h.textContent == 'peak').click();"
               "return [...d.querySelectorAll('.sortable tbody tr')].map(r => r.cells[0].textContent).join(' ') })()",
               1200),
      "0 7 2 9 4 11 6 1 8 3 10 5");
}

TEST(TensorBoard, ReadsTheEventsOfARun) {
  if (shell("python3 -c 'import tensorboard' 2>&1").exit_code != 0)
    GTEST_SKIP() << "no TensorBoard: pip install tensorboard, and its python3 first in PATH";
  std::string pattern = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path run = write_run(pattern, {.steps = 20});
  const Answer answer = shell(
      "python3 -c \"\nfrom tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "a = EventAccumulator('" +
      run.string() +
      "')\na.Reload()\n"
      "for tag in sorted(a.Tags()['scalars']):\n  e = a.Scalars(tag)\n"
      "  print(tag, len(e), e[-1].step, round(e[-1].value, 6))\n\" 2>&1");
  fs::remove_all(pattern);
  EXPECT_THAT(answer.out,
              HasSubstr("train/loss 4 20 0.5\ntrain/loss_step 20 20 0.05\ntrain/lr 20 20 0.001\nval/loss 4 20 0.3\n"));
}

}  // namespace
}  // namespace headroom
