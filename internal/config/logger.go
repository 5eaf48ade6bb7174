package config

import (
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"gopkg.in/natefinch/lumberjack.v2"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Rotation of the log file, as KubeRay documents it.
const (
	logFileMegabytes = 500
	logFileBackups   = 10
	logFileDays      = 30
)

// NewLogger returns a logger that writes to standard output and, if one is set, to the log file. It fails when the file
// cannot be opened, so that a wrong path is seen at the start and not when the lines are missed.
func (c Config) NewLogger() (logr.Logger, error) {
	return c.newLogger(os.Stdout)
}

func (c Config) newLogger(stdout io.Writer) (logr.Logger, error) {
	opts := c.Logging.Zap
	opts.DestWriter = stdout
	opts.NewEncoder = nil
	if opts.TimeEncoder == nil {
		opts.TimeEncoder = zapcore.ISO8601TimeEncoder
	}
	opts.Encoder = newEncoder(c.Logging.StdoutEncoder, opts.TimeEncoder)
	if opts.Level == nil {
		opts.Level = zapcore.InfoLevel
		if opts.Development {
			opts.Level = zapcore.DebugLevel
		}
	}

	if c.Logging.FilePath != "" {
		file := &lumberjack.Logger{
			Filename:   c.Logging.FilePath,
			MaxSize:    logFileMegabytes,
			MaxBackups: logFileBackups,
			MaxAge:     logFileDays,
		}
		// An empty write creates the file and its folder, or says why that is impossible.
		if _, err := file.Write(nil); err != nil {
			return logr.Logger{}, fmt.Errorf("opening log file %s: %w", c.Logging.FilePath, err)
		}
		encoder := &ctrlzap.KubeAwareEncoder{
			Encoder: newEncoder(c.Logging.FileEncoder, opts.TimeEncoder),
			Verbose: opts.Development,
		}
		toFile := zapcore.NewCore(encoder, zapcore.AddSync(file), opts.Level)
		opts.ZapOpts = append([]zap.Option{zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewTee(core, toFile)
		})}, opts.ZapOpts...)
	}
	return ctrlzap.New(ctrlzap.UseFlagOptions(&opts)), nil
}

func newEncoder(name string, timeEncoder zapcore.TimeEncoder) zapcore.Encoder {
	if name == encoderConsole {
		encoding := zap.NewDevelopmentEncoderConfig()
		encoding.EncodeTime = timeEncoder
		return zapcore.NewConsoleEncoder(encoding)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = timeEncoder
	return zapcore.NewJSONEncoder(encoding)
}
