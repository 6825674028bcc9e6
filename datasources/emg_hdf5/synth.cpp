// headroom.synth/1: made sessions in the emg2pose layout.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "emg_hdf5.hpp"
#include "signals.hpp"

namespace emg_hdf5 {

namespace {

constexpr uint64_t kPortion = 1024;  // records written at a time

struct Plan {
  SignalOptions signal;
  uint64_t sessions = 0, records = 0;
  bool wide_angles = false;
};

// What metadata.csv and the file's attributes say of a session.
struct Facts {
  uint64_t number = 0, user = 0;
  double start = 0.0, end = 0.0;  // unix seconds
  std::string session, side, split;
  std::string filename() const { return session + "_" + side; }
  std::string user_name() const { return "user" + std::to_string(user); }
};

Plan plan_of(const sdk::Options& options) {
  const auto whole = [&](const char* name) { return static_cast<uint64_t>(options.i64(name)); };
  Plan plan;
  plan.signal = {whole("seed"),        whole("channels"),         whole("joints"), options.f64("sample_rate_hz"),
                 options.f64("noise"), options.f64("ik_failures")};
  plan.sessions = whole("sessions");
  plan.records = static_cast<uint64_t>(std::llround(options.f64("seconds") * plan.signal.sample_rate_hz));
  plan.wide_angles = options.string("angles") == "float64";
  if (plan.records == 0) sdk::invalid("seconds times sample_rate_hz is less than one record");
  return plan;
}

// The last eighth tests, the eighth before it validates: one session of each at least, where there are three.
std::string split_of(uint64_t session, uint64_t sessions) {
  const uint64_t held = std::max<uint64_t>(1, sessions / 8);
  if (sessions >= 3 && session >= sessions - held) return "test";
  const uint64_t train = sessions >= 3 ? sessions - 2 * held : std::max<uint64_t>(1, sessions - 1);
  return session < train ? "train" : "val";
}

// Named as emg2pose names a recording: date, unix time, hash, project, number.
Facts facts_of(const Plan& plan, uint64_t number) {
  constexpr int64_t kFirst = 1670313600;  // 2022-12-06 08:00 UTC
  const int64_t start = kFirst + 600 * static_cast<int64_t>(number);
  const std::chrono::year_month_day date(
      std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(start))));
  std::ostringstream name;
  name << int(date.year()) << std::setfill('0') << '-' << std::setw(2) << unsigned(date.month()) << '-' << std::setw(2)
       << unsigned(date.day()) << '-' << start << '-' << std::hex << std::setw(5)
       << (hr_sample_key(plan.signal.seed, 2, 0, number) & 0xFFFFF) << std::dec << "-headroom-synth@1-recording-"
       << number;
  const uint64_t users = std::max<uint64_t>(1, plan.sessions / 4);
  const double seconds = static_cast<double>(plan.records) / plan.signal.sample_rate_hz;
  return {number,
          number % users,
          static_cast<double>(start),
          static_cast<double>(start) + seconds,
          name.str(),
          number % 2 == 0 ? "left" : "right",
          split_of(number, plan.sessions)};
}

void write_attributes(sdk::ArrayWriter& writer, const Plan& plan, const Facts& facts) {
  const auto text = [&](const char* name, std::string value) {
    writer.attribute(kGroup, name, sdk::Attribute::of(std::move(value)));
  };
  text("filename", facts.filename());
  text("session", facts.session);
  text("stage", "synthetic");
  text("user", facts.user_name());
  text("side", facts.side);
  text("joint_units", "rad");
  writer.attribute(kGroup, "sample_rate", sdk::Attribute::of(plan.signal.sample_rate_hz));
  writer.attribute(kGroup, "num_channels", sdk::Attribute::of(static_cast<int64_t>(plan.signal.channels)));
  writer.attribute(kGroup, "num_joints", sdk::Attribute::of(static_cast<int64_t>(plan.signal.joints)));
  writer.attribute(kGroup, "start", sdk::Attribute::of(facts.start));
  writer.attribute(kGroup, "end", sdk::Attribute::of(facts.end));
}

void put_angles(const std::vector<float>& angles, bool wide, std::byte* to) {
  if (!wide) {
    std::memcpy(to, angles.data(), angles.size() * sizeof(float));
    return;
  }
  for (std::size_t j = 0; j < angles.size(); ++j) {
    const double angle = angles[j];
    std::memcpy(to + j * sizeof angle, &angle, sizeof angle);
  }
}

void write_recording(const sdk::Host& host, const Plan& plan, const Hand& hand, const Facts& facts,
                     const std::filesystem::path& folder) {
  std::vector<float> angles(plan.signal.joints), emg(plan.signal.channels);
  const uint64_t angle_bytes = angles.size() * (plan.wide_angles ? sizeof(double) : sizeof(float));
  const uint64_t emg_offset = sizeof(double) + angle_bytes, record_bytes = emg_offset + emg.size() * sizeof(float);
  sdk::ArraySpec spec{.dataset = kDataset, .shape = {plan.records}};
  spec.members = {{"time", sdk::f64, {}, 0},
                  {"joint_angles", plan.wide_angles ? sdk::f64 : sdk::f32, {plan.signal.joints}, sizeof(double)},
                  {"emg", sdk::f32, {plan.signal.channels}, emg_offset}};
  spec.record_bytes = record_bytes;

  sdk::ArrayWriter writer(host, folder / (facts.filename() + ".hdf5"));
  const uint32_t id = writer.dataset(spec);
  Session session(hand, plan.signal, facts.user, facts.number);
  std::vector<std::byte> portion(kPortion * record_bytes);
  for (uint64_t first = 0; first < plan.records; first += kPortion) {
    host.throw_if_cancelled();
    const uint64_t count = std::min(kPortion, plan.records - first);
    for (uint64_t i = 0; i < count; ++i) {
      std::byte* record = portion.data() + i * record_bytes;
      const double time = facts.start + static_cast<double>(first + i) / plan.signal.sample_rate_hz;
      session.next(angles, emg);
      std::memcpy(record, &time, sizeof time);
      put_angles(angles, plan.wide_angles, record + sizeof time);
      std::memcpy(record + emg_offset, emg.data(), emg.size() * sizeof(float));
    }
    writer.append(id, portion.data(), count);
  }
  write_attributes(writer, plan, facts);
  writer.commit();
}

}  // namespace

sdk::OptionList EmgSource::synth_options() {
  using namespace sdk;
  return {
      opt_i64("sessions").def(16).min(1).max(100000).help("recordings to make"),
      opt_f64("seconds").def(10.0).min(0.0).max(1e6).help("length of each"),
      opt_i64("channels").def(16).min(1).max(4096).help("EMG channels"),
      opt_i64("joints").def(20).min(1).max(4096).help("joint angles"),
      opt_f64("sample_rate_hz").def(2000.0).min(1.0).max(1e6).help("records in a second"),
      opt_i64("seed").def(0).help("another seed, another hand and other movements"),
      opt_f64("noise").def(0.1).min(0.0).help(
          "standard deviation of the noise on a channel; the muscles' part is about 1"),
      opt_f64("ik_failures").def(0.02).min(0.0).max(0.2).help("fraction of the time without joint angles (all zero)"),
      opt_string("angles").def("float32").choices({"float32", "float64"}).help("how joint angles are stored"),
  };
}

void EmgSource::synthesise(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& folder) {
  const Plan plan = plan_of(options);
  const Hand hand(plan.signal);
  std::ostringstream table;
  table << "user,session,stage,side,moving_hand,held_out_user,held_out_stage,split,generalization,filename,start,end\n"
        << std::fixed << std::setprecision(3);
  for (uint64_t number = 0; number < plan.sessions; ++number) {
    const Facts facts = facts_of(plan, number);
    write_recording(host, plan, hand, facts, folder);
    table << facts.user_name() << ',' << facts.session << ",synthetic," << facts.side << ',' << facts.side
          << ",False,False," << facts.split << ",," << facts.filename() << ',' << facts.start << ',' << facts.end
          << '\n';
  }
  const std::filesystem::path file = folder / "metadata.csv";
  std::ofstream stream(file, std::ios::binary);
  stream << table.str() << std::flush;
  if (!stream) throw sdk::Error(HR_IO, "cannot write " + file.string());
}

}  // namespace emg_hdf5
