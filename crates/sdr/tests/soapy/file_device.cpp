// SoapySDR driver for tests: plays a file of samples, and simulates the failures of radios.
//
//   driver=airpace_file,path=FILE     two 32-bit floats per sample, little-endian
//   log=FILE                          log of the settings that the driver received, one per line
//   clock=samples|bytes|none          time stamps that count samples, time stamps that run twice as fast, or none
//   faults=KIND:AT:COUNT+…            at sample AT of the file:
//       lose        COUNT samples are omitted without an error
//       overflow    COUNT samples are omitted, and a read reports an overflow
//       corrupt     a read reports corrupted samples; no sample is omitted
//       quiet       COUNT reads time out
//       gone        all further reads fail, as after unplugging
//   agc=yes                           automatic gain is supported
//   most_rate=HZ                      maximum samples per second, instead of 61.44 million
//
// After the end of the file, reads return no samples. A second receiver returns the same samples with real and imaginary
// parts exchanged.

#include <SoapySDR/Device.hpp>
#include <SoapySDR/Formats.hpp>
#include <SoapySDR/Registry.hpp>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace {

struct Fault {
    std::string kind;
    size_t at;
    size_t count;
};

std::string get(const SoapySDR::Kwargs &args, const std::string &key, const std::string &otherwise)
{
    const auto found = args.find(key);
    return found == args.end() ? otherwise : found->second;
}

class FileDevice : public SoapySDR::Device {
public:
    explicit FileDevice(const SoapySDR::Kwargs &args)
        : clock(get(args, "clock", "samples")), agc(get(args, "agc", "no") == "yes"),
          mostRate(std::stod(get(args, "most_rate", "61.44e6"))), logPath(get(args, "log", ""))
    {
        std::ifstream file(get(args, "path", ""), std::ios::binary | std::ios::ate);
        if (!file) throw std::runtime_error("the file of samples cannot be read");
        samples.resize(static_cast<size_t>(file.tellg()) / sizeof(samples[0]));
        file.seekg(0);
        file.read(reinterpret_cast<char *>(samples.data()), samples.size() * sizeof(samples[0]));

        std::istringstream list(get(args, "faults", ""));
        for (std::string item; std::getline(list, item, '+');) {
            std::replace(item.begin(), item.end(), ':', ' ');
            std::istringstream words(item);
            Fault fault{"", 0, 0};
            words >> fault.kind >> fault.at >> fault.count;
            faults.push_back(fault);
        }
    }

    std::string getDriverKey() const override { return "airpace_file"; }
    std::string getHardwareKey() const override { return "file"; }
    size_t getNumChannels(const int direction) const override { return direction == SOAPY_SDR_RX ? 2 : 0; }

    std::vector<std::string> listAntennas(const int, const size_t) const override { return {"RX", "RX2"}; }
    std::string getAntenna(const int, const size_t) const override { return antenna; }
    void setAntenna(const int, const size_t channel, const std::string &name) override
    {
        antenna = name;
        log("channel " + std::to_string(channel) + " antenna " + name);
    }

    bool hasGainMode(const int, const size_t) const override { return agc; }
    void setGainMode(const int, const size_t, const bool automatic) override
    {
        log(automatic ? "gain by itself" : "gain by hand");
    }
    SoapySDR::Range getGainRange(const int, const size_t) const override { return SoapySDR::Range(0, 60); }
    double getGain(const int, const size_t) const override { return gain; }
    void setGain(const int, const size_t, const double value) override
    {
        gain = value;
        log("gain", value);
    }

    // Like some drivers, this one tunes to the nearest possible frequency without an error.
    SoapySDR::RangeList getFrequencyRange(const int, const size_t) const override
    {
        return {SoapySDR::Range(24e6, 1.8e9)};
    }
    double getFrequency(const int, const size_t) const override { return frequency; }
    void setFrequency(const int, const size_t, const double value, const SoapySDR::Kwargs &) override
    {
        frequency = std::min(std::max(value, 24e6), 1.8e9);
        log("frequency", frequency);
    }

    SoapySDR::RangeList getSampleRateRange(const int, const size_t) const override
    {
        return {SoapySDR::Range(1e6, mostRate)};
    }
    double getSampleRate(const int, const size_t) const override { return rate; }
    void setSampleRate(const int, const size_t, const double value) override
    {
        if (value > mostRate) throw std::runtime_error("too fast");
        rate = value;
        log("rate", rate);
    }
    void setBandwidth(const int, const size_t, const double value) override { log("bandwidth", value); }

    SoapySDR::Stream *setupStream(const int, const std::string &format, const std::vector<size_t> &channels,
                                  const SoapySDR::Kwargs &) override
    {
        if (format != SOAPY_SDR_CF32 || channels.empty()) throw std::runtime_error("CF32 only");
        opened = channels;
        return reinterpret_cast<SoapySDR::Stream *>(this);
    }
    void closeStream(SoapySDR::Stream *) override { log("closed"); }
    size_t getStreamMTU(SoapySDR::Stream *) const override { return 2040; }
    int activateStream(SoapySDR::Stream *, const int, const long long, const size_t) override
    {
        log("on");
        return 0;
    }
    int deactivateStream(SoapySDR::Stream *, const int, const long long) override
    {
        log("off");
        return 0;
    }

    int readStream(SoapySDR::Stream *, void *const *buffers, const size_t most, int &flags, long long &timeNs,
                   const long timeoutUs) override
    {
        size_t count = std::min(most, size_t(2040));
        if (!faults.empty() && faults.front().at <= at) {
            Fault &fault = faults.front();
            if (fault.kind == "gone") return SOAPY_SDR_STREAM_ERROR;
            if (fault.kind == "quiet" && fault.count-- > 0) {
                log("quiet");
                return wait(timeoutUs);
            }
            const std::string kind = fault.kind;
            if (kind == "lose" || kind == "overflow") at += fault.count;
            faults.erase(faults.begin());
            if (kind == "overflow") return SOAPY_SDR_OVERFLOW;
            if (kind == "corrupt") return SOAPY_SDR_CORRUPTION;
        }
        if (!faults.empty()) count = std::min(count, std::max(faults.front().at, at + 1) - at);
        if (at >= samples.size()) return wait(timeoutUs);
        count = std::min(count, samples.size() - at);
        for (size_t which = 0; which < opened.size(); which++) {
            auto *const out = static_cast<std::complex<float> *>(buffers[which]);
            for (size_t n = 0; n < count; n++) {
                const auto sample = samples[at + n];
                out[n] = opened[which] == 0 ? sample : std::complex<float>(sample.imag(), sample.real());
            }
        }
        flags = 0;
        if (clock != "none") {
            flags |= SOAPY_SDR_HAS_TIME;
            timeNs = static_cast<long long>(at * (clock == "bytes" ? 2e9 : 1e9) / rate);
        }
        at += count;
        return static_cast<int>(count);
    }

private:
    static int wait(const long timeoutUs)
    {
        std::this_thread::sleep_for(std::chrono::microseconds(timeoutUs));
        return SOAPY_SDR_TIMEOUT;
    }

    void log(const std::string &line) const
    {
        if (!logPath.empty()) std::ofstream(logPath, std::ios::app) << line << "\n";
    }
    void log(const std::string &what, const double value) const
    {
        char text[64];
        std::snprintf(text, sizeof text, "%s %.0f", what.c_str(), value);
        log(std::string(text));
    }

    const std::string clock;
    const bool agc;
    const double mostRate;
    const std::string logPath;
    std::vector<std::complex<float>> samples;
    std::vector<Fault> faults;
    std::vector<size_t> opened;
    size_t at = 0;
    std::string antenna = "RX";
    double gain = 0, frequency = 100e6, rate = 1e6;
};

SoapySDR::KwargsList find(const SoapySDR::Kwargs &args)
{
    // Without a `driver` argument, SoapySDR asks all drivers. A `type` argument belongs to another driver.
    if (args.count("type") != 0) return {};
    SoapySDR::Kwargs found = args;
    found["driver"] = "airpace_file";
    found["label"] = "a file that is played";
    return {found};
}

SoapySDR::Device *make(const SoapySDR::Kwargs &args) { return new FileDevice(args); }

SoapySDR::Registry registration("airpace_file", &find, &make, SOAPY_SDR_ABI_VERSION);

} // namespace
