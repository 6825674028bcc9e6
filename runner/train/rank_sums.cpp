#include "train/rank_sums.hpp"

#include <cstring>
#include <map>
#include <stdexcept>
#include <torch/torch.h>

#include "ranks/group.hpp"

namespace headroom {

namespace {

// Each value behind the other, as the machine has it; a rank reads what another wrote in the same order.
class SumsWriter {
 public:
  template <class Value>
  void value(Value value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    value(text.size());
    bytes_.append(text);
  }
  void tensor(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.cpu().contiguous();
    value(static_cast<int8_t>(flat.scalar_type()));
    value(flat.dim());
    for (const int64_t size : flat.sizes()) value(size);
    text({static_cast<const char*>(flat.const_data_ptr()), flat.nbytes()});
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class SumsReader {
 public:
  explicit SumsReader(std::string_view bytes) : bytes_(bytes) {}
  bool at_end() const { return bytes_.empty(); }

  template <class Value>
  Value value() {
    Value value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(value<size_t>()); }
  at::Tensor tensor() {
    const auto type = static_cast<at::ScalarType>(value<int8_t>());
    std::vector<int64_t> sizes(static_cast<size_t>(value<int64_t>()));
    for (int64_t& size : sizes) size = value<int64_t>();
    const std::string_view bytes = text();
    at::Tensor tensor = at::empty(sizes, type);
    if (tensor.nbytes() != bytes.size()) throw std::logic_error("sums of another rank are damaged");
    std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    return tensor;
  }

 private:
  std::string_view take(size_t count) {
    if (count > bytes_.size()) throw std::logic_error("sums of another rank are cut off");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  std::string_view bytes_;
};

}  // namespace

std::string to_bytes(StepSums& sums) {
  SumsWriter writer;
  writer.tensor(sums.tensor());
  for (const auto& [name, tensor] : sums.outputs().state()) {
    writer.text(name);
    writer.tensor(tensor);
  }
  return writer.take();
}

void from_bytes(std::string_view bytes, StepSums& sums) {
  const at::NoGradGuard no_grad;
  SumsReader reader(bytes);
  sums.tensor().copy_(reader.tensor());
  std::map<std::string, at::Tensor> outputs;
  while (!reader.at_end()) {
    const std::string name(reader.text());
    outputs[name] = reader.tensor().to(sums.tensor().device());
  }
  sums.outputs().restore([&](const std::string& name) {
    const auto found = outputs.find(name);
    return found == outputs.end() ? at::Tensor() : found->second;
  });
}

RankShares gather_shares(RankGroup& group, StepSums* sums, int64_t samples, std::string_view note) {
  SumsWriter writer;
  writer.value(sums != nullptr);
  writer.value(samples);
  writer.text(note);
  writer.text(sums != nullptr ? to_bytes(*sums) : "");
  RankShares all;
  for (const std::string& share : group.gather(writer.take())) {
    SumsReader reader(share);
    if (!reader.value<bool>() && all.missing < 0) all.missing = static_cast<int>(all.bytes.size());
    all.samples += reader.value<int64_t>();
    all.notes.emplace_back(reader.text());
    all.bytes.emplace_back(reader.text());
  }
  return all;
}

void add_up(const RankShares& shares, StepSums& sums, StepSums& scratch) {
  sums.zero();
  for (const std::string& bytes : shares.bytes) {
    from_bytes(bytes, scratch);
    sums.add(scratch);
  }
}

}  // namespace headroom
