// headroom.synth/1: made episodes of the handover, in ALOHA's layout.
#include <algorithm>
#include <array>

#include "arms.hpp"
#include "dual_arm_hdf5.hpp"
#include "scene.hpp"

namespace dual_arm_hdf5 {

namespace {

using namespace sdk::literals;

constexpr std::size_t kJoints = 2 * kArmJoints;
constexpr double kFollows = 0.5;       // share of the way to its target that an arm covers in a step
constexpr double kStepSeconds = 0.02;  // ALOHA's 50 Hz
using Row = std::array<float, kJoints>;
using Joints = std::array<double, kJoints>;

struct Plan {
  uint64_t seed = 0, episodes = 0, steps = 0, cameras = 0, height = 0, width = 0;
  double noise = 0.0;
};

Plan plan_of(const sdk::Options& options) {
  const auto whole = [&](const char* name) { return static_cast<uint64_t>(options.i64(name)); };
  return {whole("seed"),   whole("episodes"), whole("steps"),      whole("cameras"),
          whole("height"), whole("width"),    options.f64("noise")};
}

Row row_of(const Joints& joints) {
  Row row;
  for (std::size_t j = 0; j < kJoints; ++j) row[j] = static_cast<float>(joints[j]);
  return row;
}

ArmJoints arm_of(const Joints& joints, Side side) {
  ArmJoints arm;
  std::copy_n(joints.begin() + (side == Side::left ? 0 : kArmJoints), kArmJoints, arm.begin());
  return arm;
}

// An episode step by step: the arms follow what is commanded, a little late.
class Demonstration {
 public:
  Demonstration(const Plan& plan, uint64_t episode)
      : plan_(plan), key_(hr_sample_key(plan.seed, 1, 0, episode)), task_(plan.seed, episode), joints_(target()) {}

  struct Step {
    Row qpos, qvel, action;
    Scene scene;
  };
  Step next() {
    const Joints before = joints_, commanded = target();
    Joints moved = joints_, speed;
    for (std::size_t j = 0; j < kJoints; ++j) {
      moved[j] += kFollows * (commanded[j] - joints_[j]);
      speed[j] = (moved[j] - joints_[j]) / kStepSeconds;
    }
    Joints seen = before;
    for (std::size_t j = 0; j < kJoints; ++j)
      seen[j] += plan_.noise * sdk::normal(key_, "noise"_site, step_ * kJoints + j);
    Step result{row_of(seen), row_of(speed), row_of(commanded), scene_of(before)};
    joints_ = moved;
    ++step_;
    return result;
  }

 private:
  double progress() const {
    return plan_.steps > 1 ? static_cast<double>(step_) / static_cast<double>(plan_.steps - 1) : 0.0;
  }
  Joints target() const {
    Joints joints;
    const ArmJoints left = task_.target(Side::left, progress()), right = task_.target(Side::right, progress());
    std::copy(left.begin(), left.end(), joints.begin());
    std::copy(right.begin(), right.end(), joints.begin() + kArmJoints);
    return joints;
  }
  Scene scene_of(const Joints& joints) const {
    const ArmJoints left = arm_of(joints, Side::left), right = arm_of(joints, Side::right);
    Scene scene{
        points_of(Side::left, left), points_of(Side::right, right), left.back(), right.back(), {}, task_.mark()};
    scene.block = task_.block(progress(), scene.left.tip, scene.right.tip);
    return scene;
  }

  const Plan& plan_;
  uint64_t key_, step_ = 0;
  Handover task_;
  Joints joints_;
};

void write_episode(const sdk::Host& host, const Plan& plan, uint64_t number, const std::filesystem::path& folder) {
  sdk::ArrayWriter writer(host, folder / ("episode_" + std::to_string(number) + ".hdf5"));
  const auto joints = [&](const char* dataset) {
    return writer.dataset({.dataset = dataset, .shape = {plan.steps, kJoints}});
  };
  const uint32_t qpos = joints(kQpos), qvel = joints("/observations/qvel"), action = joints(kAction);
  std::vector<uint32_t> cameras;
  for (uint64_t view = 0; view < plan.cameras; ++view) {
    cameras.push_back(writer.dataset({.dataset = std::string(kImages) + "/" + kViews[view],
                                      .shape = {plan.steps, plan.height, plan.width, 3},
                                      .chunk = {1, plan.height, plan.width, 3},
                                      .dtype = sdk::u8}));
  }
  Demonstration demonstration(plan, number);
  std::vector<uint8_t> pixels(plan.height * plan.width * 3);
  for (uint64_t t = 0; t < plan.steps; ++t) {
    host.throw_if_cancelled();
    const Demonstration::Step step = demonstration.next();
    writer.append(qpos, step.qpos.data(), 1);
    writer.append(qvel, step.qvel.data(), 1);
    writer.append(action, step.action.data(), 1);
    for (uint64_t view = 0; view < plan.cameras; ++view) {
      draw(step.scene, view, plan.height, plan.width, pixels);
      writer.append(cameras[view], pixels.data(), 1);
    }
  }
  writer.attribute("/", "sim", sdk::Attribute::of(int64_t{1}));
  writer.commit();
}

}  // namespace

sdk::OptionList DualArmSource::synth_options() {
  using namespace sdk;
  return {
      opt_i64("episodes").def(20).min(1).max(100000).help("episodes to make"),
      opt_i64("steps").def(100).min(1).max(1000000).help("steps of each, at 50 Hz"),
      opt_i64("cameras").def(2).min(1).max(4).help("cam_high, cam_low, cam_left_wrist, cam_right_wrist: the first so "
                                                   "many"),
      opt_i64("height").def(60).min(8).max(4096).help("of a frame, in pixels"),
      opt_i64("width").def(80).min(8).max(4096).help("of a frame, in pixels"),
      opt_i64("seed").def(0).help("another seed, other places of block and mark"),
      opt_f64("noise").def(0.002).min(0.0).max(1.0).help("standard deviation of what joints are seen at, in rad"),
  };
}

void DualArmSource::synthesise(const sdk::Host& host, const sdk::Options& options,
                               const std::filesystem::path& folder) {
  const Plan plan = plan_of(options);
  for (uint64_t number = 0; number < plan.episodes; ++number) write_episode(host, plan, number, folder);
}

}  // namespace dual_arm_hdf5
